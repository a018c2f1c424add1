"""Servers as process trees: start, wait until ready, watch memory and CPU, stop. Linux only.

Memory is the proportional set size, so that what processes share counts once; CPU is that of all
live processes of the tree. Servers get their own process group and are gone afterwards.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

START_S = 180.0
STOP_S = 20.0
LOOK_EVERY_S = 0.1
SAMPLE_EVERY_S = 0.5
SETTLE_S = 0.2  # what a stopped server's timers would have done meanwhile, it does at once
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tree(pid: int) -> list[int]:
    """A process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += tree(child)
    return found


def memory_mb(pid: int) -> float:
    """Proportional set size of a tree; processes that end meanwhile count nothing."""
    total = 0
    for each in tree(pid):
        with suppress(OSError, ValueError):
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text().split()
            total += int(rollup[rollup.index("Pss:") + 1])
    return total / 1024


def cpu_s(pid: int) -> float:
    """CPU seconds that a tree has used."""
    return sum(_stat_cpu_s(Path(f"/proc/{each}/stat")) for each in tree(pid))


def main_thread_cpu_s(pid: int) -> float:
    """CPU seconds of a process's first thread, which runs the event loop."""
    return _stat_cpu_s(Path(f"/proc/{pid}/task/{pid}/stat"))


def _stat_cpu_s(path: Path) -> float:
    try:
        fields = path.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


class Watch:
    """Peak memory and CPU of a tree while the block runs."""

    def __init__(self, pid: int) -> None:
        """Of the tree below `pid`."""
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._began_s = self.cpu_s = 0.0
        self.peak_mb = 0.0

    def __enter__(self) -> Watch:
        self._began_s = cpu_s(self._pid)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        self.cpu_s = cpu_s(self._pid) - self._began_s

    def _sample(self) -> None:
        while not self._done.wait(SAMPLE_EVERY_S):
            self._look()

    def _look(self) -> None:
        self.peak_mb = max(self.peak_mb, memory_mb(self._pid))


@contextmanager
def running(
    command: Sequence[str], port: int, health: str, settings: Mapping[str, str]
) -> Iterator[int]:
    """Run a server until the block ends; its pid, once GET `health` is answered with 200.

    RuntimeError, with what it printed last, where it does not come up.
    """
    words = ["env", *(f"{name}={value}" for name, value in settings.items()), *command]
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            words, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            if not _answers(process, port, health):
                printed.seek(0)
                tail = printed.read()[-2000:].decode(errors="replace")
                raise RuntimeError(f"{' '.join(command)} did not come up:\n{tail}")
            yield process.pid
        finally:
            _stop(process)


def _answers(process: subprocess.Popen[bytes], port: int, health: str) -> bool:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", health)
            if connection.getresponse().status == 200:
                return True
        time.sleep(LOOK_EVERY_S)  # noqa: TID251 - other people's servers do not tell when they are up
    return False


@contextmanager
def awake(pid: int) -> Iterator[None]:
    """Let a server run while the block does; around it, it is stopped and takes no time.

    Servers that are compared can so take turns of seconds, and see the same machine.
    """
    os.killpg(pid, signal.SIGCONT)
    time.sleep(SETTLE_S)  # noqa: TID251 - there is nothing to ask for
    try:
        yield
    finally:
        freeze(pid)


def freeze(pid: int) -> None:
    """Stop a server that `running` started until it is `awake`."""
    os.killpg(pid, signal.SIGSTOP)


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        os.killpg(process.pid, signal.SIGCONT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # whoever is left of its group
    process.wait()


def python_of(environment: Path | None) -> str:
    """The interpreter of an environment; None is this one."""
    return sys.executable if environment is None else str(environment / "bin" / "python")
