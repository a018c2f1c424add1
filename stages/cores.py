"""The cores of the machine, shared among the stage workers of one process that have work.

A step that gains from several threads asks how many are its own: all while no other worker has an
open request, else one. torch's threads wait for each other at every operation, and beside a busy
neighbour that takes many times longer than one thread alone (docs/log.md). Torch-free.
"""

from __future__ import annotations

import os
import sys

MAX_THREADS = 2  # more were not measured


class Cores:
    """Who has work. Each worker speaks for itself only, from its own thread."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._workers: set[object] = set()

    def enter(self, worker: object) -> None:
        """The worker has work now, or had already."""
        self._workers.add(worker)

    def leave(self, worker: object) -> None:
        """It has none now, or had none."""
        self._workers.discard(worker)

    def limit(self, total: int) -> None:
        """Use no more than so many: the others belong to processes that are not seen here."""
        self._total = min(self._total, total)

    @property
    def num_workers(self) -> int:
        """How many have work."""
        return len(self._workers)

    def num_threads(self) -> int:
        """How many threads a worker that has work may use now."""
        return self._total if self.num_workers <= 1 else 1


def num_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


CORES = Cores(min(MAX_THREADS, num_cores()))
