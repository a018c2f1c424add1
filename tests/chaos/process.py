"""A server in a process of its own, and what it holds, read from /proc."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Holding:
    processes: int
    threads: int
    descriptors: int
    memory_mb: float


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children(pid):
    """All processes below `pid`."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def holding(pid):
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
    """Run `python -m command`; the process, once it says that it is ready. Stopped by SIGTERM."""
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE)
    try:
        line = process.stdout.readline()
        assert b"ready" in line, line
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        process.stdout.close()
