"""Runs servers as process trees: start, wait until ready, watch memory and CPU, stop. Linux only.

Memory is the proportional set size, so shared memory counts once. CPU is that of all live processes
of the tree. Each server has its own process group, which is killed at the end.
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
POLL_S = 0.1
SAMPLE_S = 0.5
SETTLE_S = 0.2  # a server that was frozen runs all its overdue timers at once
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tree(pid: int) -> list[int]:
    """The ids of a process and of all processes below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += tree(child)
    return found


def memory_mb(pid: int) -> float:
    """Proportional set size of a tree in MiB. Processes that end meanwhile count as 0."""
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
    """CPU seconds of a process's main thread, which runs the event loop."""
    return _stat_cpu_s(Path(f"/proc/{pid}/task/{pid}/stat"))


def _stat_cpu_s(path: Path) -> float:
    try:
        fields = path.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


class Watch:
    """Measures peak memory and CPU of a process tree while the block runs."""

    def __init__(self, pid: int) -> None:
        """Watch the tree below `pid`."""
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
        while not self._done.wait(SAMPLE_S):
            self._look()

    def _look(self) -> None:
        self.peak_mb = max(self.peak_mb, memory_mb(self._pid))


@contextmanager
def running(
    command: Sequence[str], port: int, health: str, settings: Mapping[str, str]
) -> Iterator[int]:
    """Run a server until the block ends. Yields its pid once GET `health` returns 200.

    Raises RuntimeError with the last lines of its output if it does not become ready.
    """
    arguments = ["env", *(f"{name}={value}" for name, value in settings.items()), *command]
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            arguments, stdout=printed, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            if not _becomes_ready(process, port, health):
                printed.seek(0)
                tail = printed.read()[-2000:].decode(errors="replace")
                raise RuntimeError(f"{' '.join(command)} did not become ready:\n{tail}")
            yield process.pid
        finally:
            _stop(process)


def _becomes_ready(process: subprocess.Popen[bytes], port: int, health: str) -> bool:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", health)
            if connection.getresponse().status == 200:
                return True
        time.sleep(POLL_S)  # noqa: TID251 - the rivals do not report when they are ready
    return False


@contextmanager
def awake(pid: int) -> Iterator[None]:
    """Let a frozen server run while the block runs, and freeze it again afterwards.

    So the compared servers can take turns of seconds on the same machine.
    """
    os.killpg(pid, signal.SIGCONT)
    time.sleep(SETTLE_S)  # noqa: TID251 - nothing reports when the timers have run
    try:
        yield
    finally:
        freeze(pid)


def freeze(pid: int) -> None:
    """Freeze a server that `running` started, until `awake` lets it run."""
    os.killpg(pid, signal.SIGSTOP)


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        os.killpg(process.pid, signal.SIGCONT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # processes of its group that are left
    process.wait()


def python_of(environment: Path | None) -> str:
    """The interpreter of an environment. None means the running one."""
    return sys.executable if environment is None else str(environment / "bin" / "python")
