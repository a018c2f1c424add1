"""The cores of the machine, shared among the stage workers of one process that have work.

A step that gains from several threads asks how many are its own: all while no other worker has an
open request, else one. torch's threads wait for each other at every operation, and beside a busy
neighbour that takes many times longer than one thread alone
(docs/decisions/0059-thinker-two-threads-when-alone.md). Work that is far ahead of who reads or
hears it gives way to the first sound of others. Torch-free.
"""

from __future__ import annotations

import os
import sys
import threading

MAX_THREADS = 2  # more were not measured
# How often a thread of OpenMP looks for the others before it sleeps, read when torch is loaded.
# Its own 300,000 gain nothing, and beside other programs cost a chat six times the time
# (docs/decisions/0080-openmp-spins-less.md).
os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # noqa: TID251 - not a setting of ours
PATIENCE_S = 0.1  # no longer than a step may take


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


class FirstSounds:
    """Which requests are on their way to their first sound: their first words are known.

    Only where sounds are `made_here`, in this process: of others it is not known when they are
    heard, and nobody could say that the wait is over.
    """

    def __init__(self, patience_s: float) -> None:
        self.made_here = False
        self._patience_s = patience_s
        self._coming: set[str] = set()
        self._changed = threading.Condition()

    @property
    def num_coming(self) -> int:
        """How many are waited for."""
        return len(self._coming)

    def begin(self, request_id: str) -> None:
        """Its first words are known."""
        if self.made_here:
            with self._changed:
                self._coming.add(request_id)

    def end(self, request_id: str) -> None:
        """It is heard now, or will not be; or that was known before."""
        with self._changed:
            self._coming.discard(request_id)
            if not self._coming:
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until none is coming. For those that take too long nobody waits a second time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._coming, self._patience_s):
                self._coming.clear()


def num_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


CORES = Cores(min(MAX_THREADS, num_cores()))
FIRST_SOUNDS = FirstSounds(PATIENCE_S)
