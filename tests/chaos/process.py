"""Runs a server in a process of its own, and reads its resource use from /proc."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.chaos.client import HANG_S


@dataclass(frozen=True)
class Holding:
    """The resources of a process and all processes below it. `memory_mb` is in MiB (PSS)."""

    processes: int
    threads: int
    descriptors: int
    memory_mb: float


def port_of(line):
    """The port in the line that a server prints when it is ready."""
    assert b"ready" in line, line
    return urlsplit(line.split()[-1]).port


def children(pid):
    """The ids of all processes below `pid`."""
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it exits meanwhile
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def holding(pid):
    """Measure what a process and its children hold. Children that exit meanwhile do not count."""
    each_holds = []
    for each in (pid, *children(pid)):
        with suppress(FileNotFoundError, ProcessLookupError):
            rollup = Path(f"/proc/{each}/smaps_rollup").read_text().split()
            threads, descriptors = (
                len(os.listdir(f"/proc/{each}/{kind}")) for kind in ("task", "fd")
            )
            memory_kb = int(rollup[rollup.index("Pss:") + 1])
            each_holds.append((threads, descriptors, memory_kb))
    threads, descriptors, memory_kb = map(sum, zip(*each_holds, strict=True))
    return Holding(len(each_holds), threads, descriptors, memory_kb / 1024)


@contextmanager
def server(*command):
    """Run the server `python -m command`. Yields the process and its port once it is ready.

    On exit the server is stopped with SIGTERM, and killed if that does not stop it.
    """
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE)
    try:
        yield process, port_of(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(HANG_S)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
