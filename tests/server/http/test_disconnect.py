"""A client that leaves is noticed while the producer is blocked, and its stages are aborted."""

import json

import anyio
import pytest

from tests.server.asgi import post, running
from tests.server.bench import CHAT, HELLO, SPEECH, SPOKEN, scripted, tone

SPEECH_URL = "/v1/audio/speech"
CHAT_URL = "/v1/chat/completions"
KINDS = [
    pytest.param(SPEECH_URL, SPEECH, id="audio"),
    pytest.param(SPEECH_URL, {**SPEECH, "stream_format": "sse"}, id="speech events"),
    pytest.param(CHAT_URL, {**SPOKEN, "stream": True}, id="chat events"),
]
WHOLE = pytest.param(CHAT_URL, CHAT, id="whole chat")

both_versions = pytest.mark.parametrize("spec_version", ["2.3", "2.4"])


def first_stage(deployment, url):
    return (deployment.speech if url == SPEECH_URL else deployment.chat)[0]


@both_versions
@pytest.mark.parametrize(("url", "body"), [*KINDS, WHOLE])
async def test_leaving_before_the_first_output_aborts_the_request(url, body, spec_version):
    async with scripted(thinker=(), sounder=()) as (app, deployment):
        request = post(url, body, spec_version=spec_version)
        with anyio.fail_after(5):
            async with running(request, app):
                await request.receiving.wait()
                await first_stage(deployment, url).started.wait()
                request.left.set()
            stages = deployment.speech if url == SPEECH_URL else deployment.chat[:1]
            await stages[-1].aborted.wait()
    assert request.messages == []


@both_versions
@pytest.mark.parametrize(("url", "body"), KINDS)
async def test_leaving_while_the_producer_is_silent_aborts_the_request(url, body, spec_version):
    async with scripted(thinker=HELLO[:1], sounder=(tone(300),)) as (app, deployment):
        request = post(url, body, spec_version=spec_version)
        with anyio.fail_after(5):
            async with running(request, app):
                await request.got_bytes.wait()
                request.left.set()
            stages = deployment.speech if url == SPEECH_URL else deployment.chat
            await stages[-1].aborted.wait()
    assert not request.complete


@both_versions
@pytest.mark.parametrize(("url", "body"), KINDS)
async def test_leaving_while_bytes_wait_for_the_reader_aborts_the_request(url, body, spec_version):
    async with scripted(thinker=HELLO[:1], sounder=(tone(300),)) as (app, deployment):
        request = post(url, body, spec_version=spec_version)
        request.gate = anyio.Event()
        with anyio.fail_after(5):
            async with running(request, app):
                await request.got_bytes.wait()
                request.left.set()
            stages = deployment.speech if url == SPEECH_URL else deployment.chat
            await stages[-1].aborted.wait()


async def test_leaving_after_the_end_aborts_nothing():
    async with scripted() as (app, deployment):
        await post(SPEECH_URL, SPEECH).run(app)
        assert not deployment.speech[0].aborted.is_set()
        assert not deployment.speech[1].aborted.is_set()


async def test_timeout_s_of_a_request_shortens_its_deadline():
    async with scripted(sounder=()) as (app, _):
        reply = await post(SPEECH_URL, {**SPEECH, "timeout_s": 0.01}).run(app)
    assert reply.status == 504
    assert reply.error["code"] == "deadline_exceeded"


async def test_leaving_while_sending_the_body_starts_nothing():
    async with scripted() as (app, deployment):
        request = post(SPEECH_URL, SPEECH)
        request.receive = _first_chunk_then_disconnect(json.dumps(SPEECH).encode())
        await request.run(app)
    assert request.status == 499
    assert deployment.speech[0].submitted == []


def _first_chunk_then_disconnect(body):
    messages = [
        {"type": "http.request", "body": body[:5], "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    return receive


@pytest.mark.parametrize(("url", "body"), KINDS)
async def test_an_os_error_of_send_aborts_the_request(url, body):
    async with scripted(thinker=HELLO[:1], sounder=(tone(300),)) as (app, deployment):
        request = post(url, body, spec_version="2.4")
        request.send = _send_to_nobody
        with anyio.fail_after(5):
            await request.run(app)
            stages = deployment.speech if url == SPEECH_URL else deployment.chat
            await stages[-1].aborted.wait()


async def _send_to_nobody(_message):
    raise OSError("the client is gone")
