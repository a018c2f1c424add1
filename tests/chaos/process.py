"""Runs a server in a process of its own, and reads its resource use from /proc."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


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
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def holding(pid):
    """Measure what a process and its children hold."""
    tree = [pid, *children(pid)]
    memory = 0
    for each in tree:
        rollup = Path(f"/proc/{each}/smaps_rollup").read_text().split()
        memory += int(rollup[rollup.index("Pss:") + 1])
    return Holding(
        processes=len(tree),
        threads=sum(len(os.listdir(f"/proc/{each}/task")) for each in tree),
        descriptors=sum(len(os.listdir(f"/proc/{each}/fd")) for each in tree),
        memory_mb=memory / 1024,
    )


@contextmanager
def server(*command):
    """Run the server `python -m command`. Yields the process and its port once it is ready.

    On exit the server is stopped with SIGTERM.
    """
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE)
    try:
        yield process, port_of(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        process.stdout.close()
