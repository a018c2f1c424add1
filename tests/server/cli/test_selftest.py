"""The selftest: this server passes every check, and each check notices a wrong response."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from server.cli.client.api import ServerAddress, open_client
from server.cli.main import main
from server.cli.selftest.run import checks, name_of, run, subject_of
from server.cli.selftest.subject import Subject
from tests.server.bench import fake_service
from tests.server.loopback import serving


@pytest.fixture(scope="module")
def ours():
    with serving(fake_service(port=0)) as found, open_client(ServerAddress(found.url)) as client:
        yield subject_of(client)


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
def test_this_server_passes(ours, check):
    report = run(check, ours)
    assert (report.outcome, report.reason) == ("ok", "")


@contextmanager
def answering(status, content_type, body):
    """A server that gives the same response to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.do_GET()

        def do_GET(self):
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with open_client(ServerAddress(f"http://127.0.0.1:{server.server_port}")) as client:
                yield Subject(client, "speaker", "chatter", "alloy")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        (200, "application/json", b"{}"),
        (200, "text/event-stream", b"data: {}\n\ndata: [DONE]\n\n"),
        (500, "text/plain", b"oh no"),
    ],
)
def test_every_check_fails_for_an_empty_or_failed_response(check, status, content_type, body):
    with answering(status, content_type, body) as subject:
        assert run(check, subject).outcome == "wrong"


def test_a_missing_route_is_not_offered_rather_than_wrong():
    with answering(404, "application/json", b'{"detail": "Not Found"}') as subject:
        outcomes = {run(check, subject).outcome for check in checks()}
    assert outcomes == {"not offered"}


END = {"index": 0, "delta": {}, "finish_reason": "stop"}
HELLO = {"index": 0, "delta": {"role": "assistant", "content": "Hi"}, "finish_reason": None}
CHUNK = {"id": "c", "object": "chat.completion.chunk"}


def stream(*lines):
    """The body of an event stream. Choices are wrapped in chunks, strings are sent as they are."""
    texts = [
        line if isinstance(line, str) else json.dumps({**CHUNK, "choices": [line]})
        for line in lines
    ]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (stream(HELLO, END), "not [DONE]"),
        (stream(HELLO, "[DONE]", END, "[DONE]"), "[DONE] is sent more than once"),
        (stream(HELLO, END, END, "[DONE]"), "more than one finish reason"),
        (stream(HELLO, END, HELLO, "[DONE]"), "the finish reason of the last chunk is None"),
        (stream(HELLO, "[DONE]"), "the finish reason of the last chunk is None"),
        (stream(END, "[DONE]"), "the first chunk has no role"),
        (stream(HELLO, '{"error": {"message": "oh no"}}'), "oh no"),
    ],
)
def test_a_stream_that_ends_wrongly_is_reported(body, reason):
    (check,) = (check for check in checks() if check.__name__ == "check_a_chat_streamed")
    with answering(200, "text/event-stream", body) as subject:
        report = run(check, subject)
    assert report.outcome == "wrong"
    assert reason in report.reason


def test_the_command_prints_each_check_and_fails_if_one_is_wrong(capsys):
    with serving(fake_service(port=0)) as found:
        assert main(["selftest", found.url]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.partition("  ")[0] for line in lines[:-1]] == [name_of(c) for c in checks()]
        assert lines[-1] == f"{len(checks())} ok, 0 wrong, 0 not offered"
        assert main(["selftest", found.url, "--voice", "nobody"]) == 1
        assert "7 wrong" in capsys.readouterr().out


def test_each_result_is_printed_before_the_next_check_starts():
    has_first_request, has_first_line, in_time = threading.Event(), threading.Event(), []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            if has_first_request.is_set():
                in_time.append(has_first_line.wait(20))
            has_first_request.set()
            self.send_error(404)

        def log_message(self, *_):
            pass

    command = (sys.executable, "-m", "server.cli.main", "selftest")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        with subprocess.Popen((*command, url), stdout=subprocess.PIPE, text=True) as process:
            first = process.stdout.readline()
            has_first_line.set()
            process.communicate(timeout=20)
        server.shutdown()
        thread.join()
    assert first.startswith(name_of(checks()[0]))
    assert in_time
    assert all(in_time)


def test_an_unreachable_server_is_printed_as_one_line(capsys):
    assert main(["selftest", "http://127.0.0.1:9"]) == 1
    assert capsys.readouterr().err.startswith("nano-omni: http://127.0.0.1:9")
