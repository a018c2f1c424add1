"""The timeline of a request: while it waits and runs, when it has ended, and as a trace file."""

import anyio
import pytest

from server.app import create_app
from server.observe.recent import MAX_KEPT
from stages.contract.messages import AudioEnd, SpeechEnd
from tests.server.asgi import post, running
from tests.server.bench import SPEECH, SPOKEN, fake_service, scripted, tone
from tests.server.observe.scraping import timeline_of

NAMED = {"headers": {"x-request-id": "mine"}}
FAKE_CHAT = {**SPOKEN, "model": "fake-chat", "audio": {"voice": "alloy", "format": "wav"}}


async def chat_timeline(query=b""):
    service = fake_service(debug_routes=True)
    async with service.running():
        await service.settled.wait()
        app = create_app(service)
        reply = await post("/v1/chat/completions", {**FAKE_CHAT, "n": 2}).run(app)
        assert reply.status == 200
        await anyio.wait_all_tasks_blocked()
        return (await timeline_of(app, reply.reply_headers["x-request-id"], query)).json


async def test_timelines_are_off_by_default():
    async with scripted() as (app, _):
        await post("/v1/audio/speech", SPEECH, **NAMED).run(app)
        reply = await timeline_of(app, "mine")
    assert reply.status == 404
    assert reply.error["code"] is None


async def test_timelines_need_a_key():
    async with scripted(debug_routes=True, api_keys="secret") as (app, _):
        assert (await timeline_of(app, "mine")).status == 401


async def test_an_unknown_id_is_not_found():
    async with scripted(debug_routes=True) as (app, _):
        reply = await timeline_of(app, "mine")
    assert (reply.status, reply.error["code"]) == (404, "not_found")


async def test_the_timeline_of_a_chat_has_each_stage_from_submit_to_end():
    found = await chat_timeline()
    assert (found["state"], found["outcome"], found["status"]) == ("done", "ok", 200)
    assert (found["endpoint"], found["model"]) == ("/v1/chat/completions", "fake-chat")
    assert 0 <= found["admitted_ms"] <= found["first_token_ms"] <= found["first_byte_ms"]
    assert found["first_audio_ms"] <= found["ended_ms"] <= found["now_ms"]
    assert found["audio_ms"] > 0
    assert [run["index"] for run in found["runs"]] == [0, 1]
    for run in found["runs"]:
        assert [s["name"] for s in run["stages"]] == ["thinker", "talker", "code2wav"]
        assert [s["final"] for s in run["stages"]] == [True, False, True]
        assert run["all_final_ms"] <= run["terminal_ms"]
        for stage in run["stages"]:
            assert stage["ending"] == "finished"
            assert stage["submitted_ms"] <= stage["began_ms"] <= stage["finished_ms"]
            assert 0 < stage["num_emitted"] == len(stage["emitted_ms"])
            assert stage["emitted_ms"] == sorted(stage["emitted_ms"])
            assert stage["busy_ms"][0][0] == stage["began_ms"]
            assert stage["busy_ms"][-1][1] <= stage["finished_ms"]
            assert stage["finished_ms"] <= run["terminal_ms"]


async def test_a_timeline_can_be_read_while_the_request_waits_runs_and_is_held():
    async with scripted(sounder=(), max_running=1, debug_routes=True) as (app, deployment):
        talker, sounder = deployment.speech
        talker.script = ()
        first, second = post("/v1/audio/speech", SPEECH), post("/v1/audio/speech", SPEECH, **NAMED)
        async with running(first, app):
            await sounder.has(1)
            async with running(second, app):
                await anyio.wait_all_tasks_blocked()
                waiting = (await timeline_of(app, "mine")).json
                first.left.set()
                await sounder.has(2)
                sounder.report(tone(2400))
                await second.got_bytes.wait()
                runs = (await timeline_of(app, "mine")).json
                sounder.report(AudioEnd(2400, 2))
                await anyio.wait_all_tasks_blocked()
                held = (await timeline_of(app, "mine")).json
                talker.report(SpeechEnd(1))
        done = (await timeline_of(app, "mine")).json
    assert (waiting["state"], waiting["runs"], waiting["admitted_ms"]) == ("waiting", [], None)
    assert (runs["state"], runs["audio_ms"]) == ("running", 100.0)
    assert [stage["ending"] for stage in runs["runs"][0]["stages"]] == [None, None]
    assert (held["runs"][0]["held"], held["runs"][0]["terminal_ms"]) == (True, None)
    assert held["runs"][0]["stages"][1]["ending"] == "finished"
    assert (done["state"], done["outcome"]) == ("done", "ok")
    assert done["runs"][0]["all_final_ms"] == held["runs"][0]["all_final_ms"]
    assert done["runs"][0]["terminal_ms"] > done["runs"][0]["all_final_ms"]
    assert done["admitted_ms"] > waiting["now_ms"]


async def test_a_client_that_left_is_done_once_its_stages_are():
    async with scripted(sounder=(), debug_routes=True) as (app, deployment):
        request = post("/v1/audio/speech", SPEECH, **NAMED)
        async with running(request, app):
            await deployment.speech[1].has(1)
            request.left.set()
        await anyio.wait_all_tasks_blocked()
        found = (await timeline_of(app, "mine")).json
    assert (found["state"], found["outcome"], found["status"]) == ("done", "left", 499)
    (run,) = found["runs"]
    assert run["error"] == "AbortedError"
    assert run["stages"][1]["ending"] == "aborted"
    assert run["closed_ms"] <= run["stages"][1]["aborted_ms"] <= run["terminal_ms"]


async def test_the_latest_timeline_of_an_id_is_kept_and_the_oldest_are_evicted():
    async with scripted(debug_routes=True) as (app, _):
        await post("/v1/audio/speech", SPEECH, headers={"x-request-id": "old"}).run(app)
        for _ in range(2):
            reply = await post("/v1/audio/speech", SPEECH, **NAMED).run(app)
            assert reply.status == 200
        for _ in range(MAX_KEPT - 1):
            await post("/v1/audio/speech", b"{").run(app)
        assert (await timeline_of(app, "mine")).status == 200
        assert (await timeline_of(app, "old")).status == 404


async def test_trace_viewers_get_spans_within_the_request_in_named_threads():
    trace = await chat_timeline(b"format=chrome")
    events = trace["traceEvents"]
    lanes = {
        (e["pid"], e["args"]["name"])
        for e in events
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    stages = {"thinker", "talker", "code2wav", "gate", "request"}
    assert lanes == {(pid, name) for pid in (0, 1) for name in stages}
    spans = [event for event in events if event["ph"] == "X"]
    assert {"request", "waits", "works", "finished"} <= {span["name"] for span in spans}
    whole = next(span for span in spans if span["name"] == "request")
    assert all(0 <= span["ts"] <= span["ts"] + span["dur"] for span in spans)
    assert all(span["ts"] + span["dur"] <= whole["ts"] + whole["dur"] + 1000 for span in spans)
    assert {event["ph"] for event in events} == {"M", "X", "i"}


@pytest.mark.parametrize("query", [b"format=svg", b"format="])
async def test_another_format_is_refused(query):
    async with scripted(debug_routes=True) as (app, _):
        await post("/v1/audio/speech", SPEECH, **NAMED).run(app)
        reply = await timeline_of(app, "mine", query)
    assert (reply.status, reply.error["param"]) == (400, "format")
