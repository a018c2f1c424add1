"""Speech over HTTP: bytes, headers, events, and how both end."""

import base64
import io
import json
import struct
import wave
from contextlib import asynccontextmanager

import anyio
import numpy as np
import pytest

from server.encoding.formats import FORMATS
from server.errors import BrokenStreamError
from stages.contract.errors import DeadlineError, OverloadedError, RequestError, WorkerDiedError
from stages.contract.messages import AudioEnd
from tests.server.asgi import events, post, running
from tests.server.bench import SOUND, SPEECH, fake, scripted, tone

URL = "/v1/audio/speech"
SAMPLES = b"".join(chunk.samples.tobytes() for chunk in SOUND[:2])


async def speak(app, **changes):
    return await post(URL, {**SPEECH, **changes}).run(app)


async def test_pcm_is_only_the_samples():
    async with scripted() as (app, _):
        reply = await speak(app)
    assert reply.status == 200
    assert reply.reply_headers["content-type"] == "audio/pcm"
    assert reply.reply_headers["cache-control"] == "no-store"
    assert reply.reply_headers["x-accel-buffering"] == "no"
    assert not {"content-length", "content-encoding"} & set(reply.reply_headers)
    assert reply.content == SAMPLES


async def test_wav_is_a_header_of_unknown_length_and_the_samples():
    async with scripted() as (app, _):
        reply = await speak(app, response_format="wav")
    assert reply.reply_headers["content-type"] == "audio/wav"
    head, samples = reply.content[:44], reply.content[44:]
    assert samples == SAMPLES
    assert struct.unpack("<I", head[4:8]) == struct.unpack("<I", head[40:44]) == (0xFFFFFFFF,)
    with wave.open(io.BytesIO(reply.content)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        assert file.readframes(10_000) == SAMPLES


@pytest.mark.parametrize("response_format", FORMATS)
async def test_events_are_the_bytes_of_the_file_then_usage_then_done(response_format):
    async with scripted() as (app, _):
        plain = await speak(app, response_format=response_format)
        reply = await speak(app, response_format=response_format, stream_format="sse")
    assert reply.reply_headers["content-type"] == "text/event-stream; charset=utf-8"
    assert reply.reply_headers["x-accel-buffering"] == "no"
    assert reply.reply_headers["cache-control"] == "no-cache"
    *deltas, done, last = events(reply.content)
    deltas = [json.loads(delta) for delta in deltas]
    assert all(set(delta) == {"type", "audio"} for delta in deltas)
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(delta["audio"]) for delta in deltas) == plain.content
    usage = {"input_tokens": len(SPEECH["input"]), "output_tokens": 5}
    usage["total_tokens"] = sum(usage.values())
    assert json.loads(done) == {"type": "speech.audio.done", "usage": usage}
    assert last == "[DONE]"


async def test_parameters_reach_the_stages():
    async with scripted() as (app, deployment):
        await speak(app, seed=7, speed=2, noise_scale=0.5, noise_w=0, voice={"id": "high"})
        (_, request), (_, sounder) = (stage.submitted[0] for stage in deployment.speech)
    assert request.source[0].text == SPEECH["input"]
    talker = request.params[0]
    assert (talker.voice, talker.seed, talker.settings.speed) == ("high", 7, 2.0)
    assert (talker.settings.noise_scale, talker.settings.noise_w) == (0.5, 0.0)
    assert sounder.params.voice == "high"


async def test_without_a_seed_each_request_gets_a_random_one():
    async with scripted() as (app, deployment):
        await speak(app)
        await speak(app, seed=None)
        seeds = {request.params[0].seed for _, request in deployment.speech[0].submitted}
    assert len(seeds) == 2


async def test_nulls_and_unknown_fields_are_ignored():
    optional = ("speed", "instructions", "stream_format", "seed", "language", "noise_w")
    async with scripted() as (app, _):
        reply = await speak(app, **dict.fromkeys(optional), stream=True, foo={"bar": [1]})
    assert reply.status == 200


async def test_a_voice_name_of_openai_is_the_default_voice():
    async with scripted(voice="high") as (app, deployment):
        await speak(app, voice="alloy")
        assert deployment.speech[0].submitted[0][1].params[0].voice == "high"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (RequestError("r", "the secret of the stage"), 500, "generation_failed"),
        (WorkerDiedError("the secret of the stage"), 503, "worker_died"),
        (DeadlineError("the secret of the stage"), 504, "deadline_exceeded"),
        (OverloadedError("the secret of the stage"), 429, "rate_limit_exceeded"),
    ],
)
@pytest.mark.parametrize("stream_format", ["audio", "sse"])
async def test_a_failure_before_the_first_output_has_a_status(error, status, code, stream_format):
    async with scripted(sounder=(error,)) as (app, _):
        reply = await speak(app, stream_format=stream_format)
    assert reply.status == status
    assert reply.error["code"] == code
    assert "secret" not in reply.error["message"]
    assert reply.reply_headers["x-request-id"]


async def test_a_failure_in_the_file_breaks_off_the_body():
    async with scripted(sounder=(tone(100), RequestError("r", "no"))) as (app, _):
        request = post(URL, SPEECH)
        with pytest.raises(BrokenStreamError):
            await request.run(app)
    assert request.status == 200
    assert not request.complete
    assert request.content == tone(100).samples.tobytes()


async def test_a_failure_in_a_stream_is_an_error_event_and_breaks_it_off():
    async with scripted(sounder=(tone(100), RequestError("r", "no"))) as (app, _):
        request = post(URL, {**SPEECH, "stream_format": "sse"})
        with pytest.raises(BrokenStreamError):
            await request.run(app)
    assert not request.complete
    _, failure = map(json.loads, events(request.content))
    assert set(failure) == {"error"}
    assert failure["error"]["code"] == "generation_failed"


async def test_an_unexpected_error_is_a_500_without_details():
    wrong_rate = tone(10)
    object.__setattr__(wrong_rate, "rate_hz", 8000)
    async with scripted(sounder=(wrong_rate,)) as (app, _):
        request = post(URL, SPEECH)
        with pytest.raises(ValueError, match="8000"):
            await request.run(app)
    assert request.status == 500
    assert request.error["type"] == "server_error"
    assert "8000" not in request.content.decode()


async def test_a_ping_is_sent_before_the_first_event():
    async with scripted(sounder=(), ping_s=0.01) as (app, deployment):
        request = post(URL, {**SPEECH, "stream_format": "sse"})
        async with running(request, app):
            await request.got_bytes.wait()
            assert request.content.startswith(b": ping\n\n")
            for item in SOUND:
                deployment.speech[1].report(item)
    assert events(request.content)[-1] == "[DONE]"


async def test_a_failure_after_a_ping_is_an_error_event():
    async with scripted(sounder=(), ping_s=0.01) as (app, deployment):
        request = post(URL, {**SPEECH, "stream_format": "sse"})
        async with failing_after_the_first_byte(request, deployment.speech[1]):
            with pytest.raises(BrokenStreamError):
                await request.run(app)
    (failure,) = events(request.content)
    assert "error" in json.loads(failure)
    assert not request.complete


async def test_a_speech_without_sound_is_refused():
    async with scripted(sounder=(AudioEnd(0, 0),)) as (app, _):
        reply = await speak(app, response_format="wav")
    assert reply.status == 400
    assert reply.json["error"]["param"] == "input"


async def test_the_fake_model_speaks_a_tone_for_each_word():
    async with fake() as app:
        reply = await speak(app, model="fake-speech", voice="alloy", input="One two three.")
        again = await speak(app, model="tts-1", voice="fake-low", input="One two three.", seed=3)
    samples = np.frombuffer(reply.content, "<i2")
    assert len(samples) == 480 * len("Onetwothree.")
    assert np.abs(samples).max() > 1000
    assert again.content == reply.content


@asynccontextmanager
async def failing_after_the_first_byte(request, stage):
    """The stage fails as soon as the request has received bytes."""

    async def fail():
        await request.got_bytes.wait()
        stage.report(RequestError("r", "no"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
        yield
