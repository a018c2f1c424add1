"""The log: one format for all records, and no second record of the same event."""

import json
import logging

import pytest
import structlog

from server.config.logs import configure_logs
from server.config.settings import Settings
from server.errors import BrokenStreamError
from tests.server.asgi import get, post
from tests.server.bench import CHAT, SPEECH, SPOKEN, scripted

pytestmark = pytest.mark.usefixtures("python_logs_as_before")


def fail(error):
    try:
        raise error
    except Exception:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")


def test_without_a_terminal_each_record_is_a_line_of_json(capsys):
    configure_logs(Settings())
    structlog.get_logger("server").info("request", status=200)
    structlog.get_logger("server").debug("detail")
    fail(ValueError("x"))
    request, failure = map(json.loads, capsys.readouterr().err.splitlines())
    assert (request["event"], request["status"], request["level"]) == ("request", 200, "info")
    assert "ValueError: x" in failure["exception"]


def test_on_a_terminal_a_traceback_shows_no_values(capsys):
    configure_logs(Settings(log_format="console"))
    secret = "what the user said"
    fail(ValueError(len(secret)))
    written = capsys.readouterr().err
    assert "ValueError: 18" in written
    assert secret not in written


def test_a_broken_stream_is_logged_once(capsys):
    configure_logs(Settings())
    fail(BrokenStreamError())
    assert capsys.readouterr().err == ""


def test_no_log_level_writes_the_text_of_events(capsys):
    configure_logs(Settings(log_level="debug"))
    logging.getLogger("sse_starlette.sse").debug("chunk: %s", "what the user said")
    assert "what the user said" not in capsys.readouterr().err


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


async def test_a_request_is_one_line_with_its_times_and_outcome(capsys):
    configure_logs(Settings())
    async with scripted() as (app, _):
        reply = await post("/v1/chat/completions", SPOKEN).run(app)
    (line,) = lines(capsys)
    assert line["event"] == "request"
    assert line["id"] == reply.reply_headers["x-request-id"]
    assert (line["model"], line["outcome"], line["status"]) == ("chatter", "ok", 200)
    assert 0 <= line["admitted_ms"] <= line["first_token_ms"] <= line["first_audio_ms"]
    assert line["first_audio_ms"] <= line["ms"] + 1
    assert (line["audio_ms"], line["underruns"]) == (200, 0)


async def test_a_refused_request_is_logged_and_health_checks_are_not(capsys):
    configure_logs(Settings())
    async with scripted() as (app, _):
        for path in ("/metrics", "/health", "/debug/requests/x/timeline"):
            await get(path).run(app)
        await post("/v1/audio/speech", {**SPEECH, "voice": "nobody"}).run(app)
    (line,) = lines(capsys)
    assert (line["outcome"], line["status"], line["admitted_ms"]) == ("invalid", 400, None)


@pytest.mark.parametrize("log_texts", [False, True])
async def test_bodies_are_logged_only_with_log_texts(capsys, log_texts):
    configure_logs(Settings(log_level="debug"))
    async with scripted(log_texts=log_texts) as (app, _):
        for path, body in (("audio/speech", SPEECH), ("chat/completions", CHAT)):
            await post(f"/v1/{path}", body).run(app)
    requests = [line for line in lines(capsys) if line["event"] == "request"]
    assert len(requests) == 2
    texts = SPEECH["input"], CHAT["messages"][0]["content"]
    for line, text in zip(requests, texts, strict=True):
        assert (text in json.dumps(line)) == ("body" in line) == log_texts
