"""Metrics: what is counted when, and under which labels. No label contains a client's text."""

import anyio
import pytest

from server.app import create_app
from server.observe.metric_names import DECLARED
from stages.contract.errors import RequestError
from stages.contract.messages import AudioEnd, TextChunk
from tests.server.asgi import get, post, running
from tests.server.bench import CHAT, SPEECH, SPOKEN, fake, fake_service, scripted, tone
from tests.server.observe.scraping import metrics_of

SPEECH_LABELS = "endpoint=/v1/audio/speech model=speaker"
CHAT_LABELS = "endpoint=/v1/chat/completions model=chatter"
FAKE_CHAT = {**SPOKEN, "model": "fake-chat", "audio": {"voice": "alloy", "format": "wav"}}


def outcomes(metrics):
    return {
        labels: value
        for (name, labels), value in metrics.items()
        if name == "nano_omni_requests_total"
    }


async def test_a_speech_is_counted_with_its_audio():
    async with scripted() as (app, _):
        await post("/v1/audio/speech", SPEECH).run(app)
        metrics = await metrics_of(app)
    assert outcomes(metrics) == {f"{SPEECH_LABELS} outcome=ok": 1}
    for name in ("first_audio_seconds", "real_time_factor", "request_seconds"):
        assert metrics[f"nano_omni_{name}_count", SPEECH_LABELS] == 1
    assert metrics["nano_omni_queue_seconds_count", "model=speaker"] == 1
    seconds = metrics["nano_omni_audio_seconds_total", "model=speaker"]
    assert seconds == pytest.approx(4801 / 24_000)
    assert metrics["nano_omni_underruns_total", SPEECH_LABELS] == 0
    assert not any(name.startswith("nano_omni_first_token") for name, _ in metrics)


async def test_a_chat_is_counted_with_its_tokens_whole_and_streamed():
    async with scripted() as (app, _):
        for body in (SPOKEN, {**SPOKEN, "stream": True}):
            reply = await post("/v1/chat/completions", body).run(app)
            assert reply.status == 200
        metrics = await metrics_of(app)
    assert metrics["nano_omni_prompt_tokens_total", "model=chatter"] == 10
    assert metrics["nano_omni_completion_tokens_total", "model=chatter"] == 4
    assert metrics["nano_omni_first_token_seconds_count", CHAT_LABELS] == 2
    assert metrics["nano_omni_first_audio_seconds_count", CHAT_LABELS] == 2
    assert metrics["nano_omni_gate_hold_seconds_count", "model=chatter"] == 2


async def test_tokens_of_a_reply_that_was_cut_off_count_too():
    async with scripted(thinker=(), sounder=()) as (app, deployment):
        request = post("/v1/chat/completions", {**CHAT, "stream": True})
        async with running(request, app):
            await deployment.chat[0].started.wait()
            deployment.chat[0].report(TextChunk("Hi", 3))
            await request.got_bytes.wait()
            request.left.set()
        await anyio.wait_all_tasks_blocked()
        metrics = await metrics_of(app)
    assert outcomes(metrics) == {f"{CHAT_LABELS} outcome=left": 1}
    assert metrics["nano_omni_completion_tokens_total", "model=chatter"] == 3
    assert metrics["nano_omni_aborts_total", "model=chatter stage=thinker"] == 1
    assert metrics["nano_omni_abort_seconds_count", "model=chatter stage=thinker"] == 1
    assert ("nano_omni_request_seconds_count", CHAT_LABELS) not in metrics


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ({**SPEECH, "voice": "nobody"}, "model=speaker outcome=invalid"),
        ({**SPEECH, "model": "tts-1", "speed": 99}, "model=unknown outcome=invalid"),
        ({**SPEECH, "model": "made up by a client"}, "model=unknown outcome=invalid"),
        (b"{", "model=unknown outcome=invalid"),
    ],
)
async def test_a_refused_request_is_counted_without_a_label_from_the_client(body, labels):
    async with scripted() as (app, _):
        await post("/v1/audio/speech", body).run(app)
        metrics = await metrics_of(app)
    assert outcomes(metrics) == {f"endpoint=/v1/audio/speech {labels}": 1}


async def test_an_alias_counts_as_its_model_and_other_urls_do_not_count():
    async with scripted() as (app, _):
        await post("/v1/audio/speech", {**SPEECH, "model": "tts-1"}).run(app)
        await post("/v1/nothing", SPEECH).run(app)
        await get("/v1/models").run(app)
        assert outcomes(await metrics_of(app)) == {f"{SPEECH_LABELS} outcome=ok": 1}


@pytest.mark.parametrize("sounder", [(ValueError("no"),), (tone(240), RequestError("r", "no"))])
async def test_a_failure_counts_the_same_before_and_after_the_first_byte(sounder):
    async with scripted(sounder=sounder) as (app, _):
        request = post("/v1/audio/speech", SPEECH)
        with pytest.raises(Exception):  # noqa: B017, PT011 - the server logs it
            await request.run(app)
        await anyio.wait_all_tasks_blocked()
        metrics = await metrics_of(app)
    assert outcomes(metrics) == {f"{SPEECH_LABELS} outcome=failed": 1}


async def test_a_passed_deadline_counts_as_deadline():
    async with scripted(sounder=(), deadline_s=0.01) as (app, _):
        reply = await post("/v1/audio/speech", SPEECH).run(app)
        assert reply.status == 504
        await anyio.wait_all_tasks_blocked()
        metrics = await metrics_of(app)
    assert outcomes(metrics) == {f"{SPEECH_LABELS} outcome=deadline": 1}


async def test_running_waiting_and_refused_requests_are_current():
    async with scripted(sounder=(), max_running=1, max_waiting=1) as (app, deployment):
        first, second = post("/v1/audio/speech", SPEECH), post("/v1/audio/speech", SPEECH)
        async with running(first, app):
            await deployment.speech[1].has(1)
            async with running(second, app):
                await anyio.wait_all_tasks_blocked()
                reply = await post("/v1/audio/speech", SPEECH).run(app)
                assert reply.status == 429
                metrics = await metrics_of(app)
                second.left.set()
            first.left.set()
        await anyio.wait_all_tasks_blocked()
        after = await metrics_of(app)
    assert metrics["nano_omni_oldest_wait_seconds", ""] > after["nano_omni_oldest_wait_seconds", ""]
    assert after["nano_omni_oldest_wait_seconds", ""] == 0
    assert metrics["nano_omni_requests_running", ""] == 1
    assert metrics["nano_omni_requests_waiting", ""] == 1
    assert metrics["nano_omni_requests_running_limit", ""] == 1
    assert metrics["nano_omni_requests_refused_total", ""] == 1
    assert outcomes(metrics) == {f"{SPEECH_LABELS} outcome=overloaded": 1}
    assert after["nano_omni_requests_running", ""] == after["nano_omni_requests_waiting", ""] == 0


@pytest.fixture
def impatient(monkeypatch):
    """A jitter buffer with a delay of -1 s: each stream has an underrun."""
    monkeypatch.setattr("server.observe.timeline.BUFFER_S", -1.0)


@pytest.mark.usefixtures("impatient")
async def test_a_pause_in_a_stream_that_a_player_would_hear_is_an_underrun():
    async with scripted(sounder=()) as (app, deployment):
        request = post("/v1/audio/speech", SPEECH)
        sounder = deployment.speech[1]
        async with running(request, app):
            await sounder.has(1)
            sounder.report(tone(240))
            await request.got_bytes.wait()
            sounder.report(tone(240))
            sounder.report(AudioEnd(480, 1))
        metrics = await metrics_of(app)
    assert metrics["nano_omni_underruns_total", SPEECH_LABELS] == 1
    assert metrics["nano_omni_underrun_requests_total", SPEECH_LABELS] == 1
    assert metrics["nano_omni_underrun_seconds_total", SPEECH_LABELS] > 0


@pytest.mark.usefixtures("impatient")
async def test_a_reply_that_is_sent_whole_has_no_underruns():
    async with scripted(sounder=()) as (app, deployment):
        request = post("/v1/chat/completions", SPOKEN)
        sounder = deployment.chat[2]
        async with running(request, app):
            await sounder.has(1)
            sounder.report(tone(240))
            await anyio.wait_all_tasks_blocked()
            sounder.report(tone(240))
            sounder.report(AudioEnd(480, 1))
        metrics = await metrics_of(app)
    assert metrics["nano_omni_underruns_total", CHAT_LABELS] == 0


async def test_the_steps_of_workers_are_counted():
    async with fake() as app:
        reply = await post("/v1/chat/completions", FAKE_CHAT).run(app)
        assert reply.status == 200
        metrics = await metrics_of(app)
    for stage in ("thinker", "talker", "code2wav"):
        labels = f"replica=0 stage={stage}"
        assert metrics["nano_omni_stage_up", labels] == 1
        assert metrics["nano_omni_stage_restarts_total", labels] == 0
        assert metrics["nano_omni_stage_open_requests", labels] == 0
        assert metrics["nano_omni_stage_queue_depth", labels] == 0
        steps = metrics["nano_omni_stage_step_seconds_count", labels]
        assert steps == metrics["nano_omni_stage_batch_size_count", labels] > 1
        assert metrics["nano_omni_stage_step_seconds_sum", labels] > 0


async def test_exactly_the_declared_metrics_are_exposed():
    async with fake() as app:
        await post("/v1/chat/completions", FAKE_CHAT).run(app)
        reply = await get("/metrics").run(app)
    told = {
        tuple(line.split()[2:4])
        for line in reply.content.decode().splitlines()
        if line.startswith("# TYPE nano_omni_")
    }
    assert told == {(of.name, of.kind) for of in DECLARED}


async def test_two_servers_in_one_process_count_separately():
    async with scripted() as (one, _), scripted() as (other, _):
        await post("/v1/audio/speech", SPEECH).run(one)
        assert len(outcomes(await metrics_of(one))) == 1
        assert outcomes(await metrics_of(other)) == {}


async def test_metrics_need_no_key_and_can_be_openmetrics():
    async with scripted(api_keys="secret") as (app, _):
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        reply = await get("/metrics", headers=accept).run(app)
        await post("/v1/audio/speech", SPEECH).run(app)
        metrics = await metrics_of(app)
    assert reply.status == 200
    assert reply.reply_headers["content-type"].startswith("application/openmetrics-text")
    assert reply.content.endswith(b"# EOF\n")
    assert outcomes(metrics) == {"endpoint=/v1/audio/speech model=unknown outcome=invalid": 1}


async def test_metrics_are_there_while_the_models_load():
    metrics = await metrics_of(create_app(fake_service()))
    assert metrics["nano_omni_ready", ""] == 0
    assert not any(name.startswith("nano_omni_stage") for name, _ in metrics)
