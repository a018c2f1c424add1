"""A server with a local Ray cluster is stopped by a signal while a stream runs."""

import os
import signal
import subprocess
import sys

import httpx2
import pytest

from tests.chaos.test_chaos import until

pytestmark = pytest.mark.ray

SERVE = [sys.executable, "-m", "server.cli.main", "serve", "--port", "0"]
OPTIONS = ["--max-input-chars=8192", "--max-reply-tokens=1000", "--model=fake", "--executor=ray"]
CHAT = {
    "model": "fake-chat",
    "messages": [
        {"role": "user", "content": "incomprehensible " * 450}
    ],  # more than sockets buffer
    "modalities": ["text", "audio"],
    "audio": {"voice": "fake-low", "format": "pcm16"},
    "stream": True,
}


def session_of(process):
    """The processes in the session that it leads, which has its whole cluster."""
    found = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        try:
            if os.getsid(pid) == process.pid:
                found.append(pid)
        except ProcessLookupError:  # it ended meanwhile
            continue
    return found


@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)],
    ids=["to the server", "from the terminal"],
)
def test_the_stream_ends_well_and_nothing_is_left(number, send):
    with subprocess.Popen(
        [*SERVE, *OPTIONS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            url = process.stdout.readline().decode().split()[-1]
            assert len(session_of(process)) > 3
            with httpx2.stream("POST", f"{url}/chat/completions", json=CHAT, timeout=30) as reply:
                lines = reply.raise_for_status().iter_lines()
                next(lines)
                send(process.pid, number)
                assert process.stdout.readline().startswith(b"stopping: 1 running")
                *_, last = filter(None, lines)
            _, logged = process.communicate(timeout=30)
            assert last == "data: [DONE]"
            assert process.returncode == 0
            assert until(lambda: session_of(process) == [])
            assert b"*** SIG" not in logged  # another handler than ours, and what it does follows
        finally:
            for pid in session_of(process):
                os.kill(pid, signal.SIGKILL)
