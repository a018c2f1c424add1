"""The log: one format for all records, and no noise for what has its line already."""

import json
import logging

import pytest
import structlog

from server.errors import BrokenStreamError
from server.logs import configure_logs
from server.settings import Settings


@pytest.fixture(autouse=True)
def log_as_before():
    root, web = logging.getLogger(), logging.getLogger("uvicorn")
    handlers, level, web_level = root.handlers[:], root.level, web.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    web.setLevel(web_level)


def fail(error):
    try:
        raise error
    except Exception:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application")


def test_away_from_a_terminal_each_record_is_a_line_of_json(capsys):
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


def test_a_stream_that_broke_is_not_told_twice(capsys):
    configure_logs(Settings())
    fail(BrokenStreamError())
    assert capsys.readouterr().err == ""


def test_no_level_lets_the_text_of_an_event_into_the_log(capsys):
    configure_logs(Settings(log_level="debug"))
    logging.getLogger("sse_starlette.sse").debug("chunk: %s", "what the user said")
    assert "what the user said" not in capsys.readouterr().err
