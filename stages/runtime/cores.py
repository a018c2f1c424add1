"""Shares the machine's cores among the stage workers of one process.

A step that runs faster on several threads asks how many it may use: all cores while no other worker
has an open request, else one. The reason is that torch's threads wait for each other at every
operation. Beside a busy worker, several threads take many times longer than one
(docs/decisions/0059-thinker-two-threads-when-alone.md). Work that is far ahead of its reader or
listener waits for the first sound of other requests. Torch-free.
"""

from __future__ import annotations

import os
import sys
import threading

MAX_THREADS = 2  # more were not measured
# How many times an OpenMP thread checks for the others before it sleeps. Read when torch is loaded.
# OpenMP's default of 300,000 gains nothing, and beside other programs a chat took six times as long
# (docs/decisions/0080-openmp-spins-less.md).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # noqa: TID251 - not a setting of ours
PATIENCE_S = 0.1  # about the longest that a step may take


class Cores:
    """Which workers have work. Each worker calls this for itself only, from its own thread."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._workers: set[object] = set()

    def enter(self, worker: object) -> None:
        """The worker has work now. May be called again while it has."""
        self._workers.add(worker)

    def leave(self, worker: object) -> None:
        """The worker has no work now. May be called again."""
        self._workers.discard(worker)

    def limit(self, total: int) -> None:
        """Use at most `total` cores. The others are for processes that are not counted here."""
        self._total = min(self._total, total)

    @property
    def num_workers(self) -> int:
        """How many workers have work."""
        return len(self._workers)

    def num_threads(self) -> int:
        """How many threads a worker that has work may use now."""
        return self._total if self.num_workers <= 1 else 1


class FirstSounds:
    """The requests whose first words are known, and whose first sound is still being made.

    Only if sounds are `made_here`, in this process. Otherwise this process does not learn when a
    sound is ready, so nobody could end the wait.
    """

    def __init__(self, patience_s: float) -> None:
        self.made_here = False
        self._patience_s = patience_s
        self._coming: set[str] = set()
        self._changed = threading.Condition()

    @property
    def num_coming(self) -> int:
        """How many requests others wait for."""
        return len(self._coming)

    def begin(self, request_id: str) -> None:
        """The first words of a request are known."""
        if self.made_here:
            with self._changed:
                self._coming.add(request_id)

    def end(self, request_id: str) -> None:
        """Its first sound is ready, or will never come. May be called again."""
        with self._changed:
            self._coming.discard(request_id)
            if not self._coming:
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until no first sound is coming, but only once for those that take too long."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._coming, self._patience_s):
                self._coming.clear()


def num_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


CORES = Cores(min(MAX_THREADS, num_cores()))
FIRST_SOUNDS = FirstSounds(PATIENCE_S)
