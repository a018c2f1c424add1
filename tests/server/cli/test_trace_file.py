"""`nano-omni trace`: the file it writes, and its errors if there is no timeline."""

import json

import httpx2
import pytest

from server.cli.main import main
from tests.server.bench import fake_service
from tests.server.loopback import serving

SPEECH = {"model": "tts-1", "voice": "alloy", "input": "Hello there."}


@pytest.fixture(scope="module")
def server():
    with serving(fake_service(port=0, debug_routes=True, api_keys="secret")) as address:
        yield address


def run_trace(server, request_id, path, key="secret"):
    return main(["trace", request_id, "-o", str(path), "--url", server.url, "--api-key", key])


def test_the_trace_of_a_finished_request_is_written(server, tmp_path, capsys):
    headers = {"authorization": "Bearer secret"}
    reply = httpx2.post(f"{server.url}/v1/audio/speech", json=SPEECH, headers=headers)
    path = tmp_path / "t.json"
    assert run_trace(server, reply.headers["x-request-id"], path) == 0
    assert str(path) in capsys.readouterr().out
    names = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
    assert {"request", "works", "emits", "terminal"} <= names


@pytest.mark.parametrize(
    ("request_id", "key", "message"),
    [("nobody's", "secret", "DEBUG_ROUTES"), ("nobody's", "wrong", "401")],
)
def test_on_an_error_no_file_is_written(server, tmp_path, capsys, request_id, key, message):
    assert run_trace(server, request_id, tmp_path / "t.json", key) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_unreachable_server_is_printed_as_one_line(tmp_path, capsys):
    assert main(["trace", "x", "-o", str(tmp_path / "t"), "--url", "http://127.0.0.1:8739"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
