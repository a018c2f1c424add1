"""Admission: `max_running` requests run, `max_waiting` wait for a time, the rest are refused.

Waiting requests start round-robin by key, and first come first served within a key. A key may
queue up to its share, `max_waiting` ÷ keys that wait. If a new key makes the share smaller, the
newest requests of keys above it are evicted when room is needed. All orchestrators of a server
share one admission. It is used in the event loop's thread only.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from stages.contract.errors import OverloadedError

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class AdmissionStats:
    """For metrics. `oldest_wait_s`: how long the request that waits longest has waited."""

    num_running: int
    num_waiting: int
    num_refused: int
    oldest_wait_s: float


@dataclass(slots=True)
class Ticket:
    """The right to run `places` requests. `release` gives it back, once."""

    places: int
    _give_back: Callable[[int], None]
    _held: bool = True

    def release(self) -> None:
        """Give the places back. A second call does nothing."""
        if self._held:
            self._held = False
            self._give_back(self.places)

    def split(self) -> list[Ticket]:
        """One ticket for each place. This ticket is spent."""
        self._held = False
        return [Ticket(1, self._give_back) for _ in range(self.places)]


@dataclass(slots=True)
class _Waiting:
    key: str
    places: int
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    since: float = field(default_factory=time.monotonic)
    evicted: bool = False  # otherwise admitted, once `decided`


class Admission:
    """Hands out places. A key stands for a caller; callers without one share the key "".

    `max_running` may be changed while no request is running or waiting. No request waits longer
    than `max_wait_s`; None is no limit.
    """

    def __init__(self, max_running: int, max_waiting: int, max_wait_s: float | None = None) -> None:
        self.max_running = max_running
        self._max_waiting = max_waiting
        self._max_wait_s = max_wait_s
        self._num_running = 0
        self._num_refused = 0
        self._queues: dict[str, deque[_Waiting]] = {}  # by key, the next to be served first

    async def enter(self, key: str = "", places: int = 1) -> Ticket:
        """Wait until `places` are free at once, and take them.

        Raises OverloadedError if no waiting place is left for the key, or if the wait takes longer
        than `max_wait_s`. A call that is cancelled while it waits leaves the queue.
        """
        if not self._queues and self._num_running + places <= self.max_running:
            self._num_running += places
            return Ticket(places, self._give_back_places)
        self._free_waiting_places(key, places)
        waiting = _Waiting(key, places)
        self._queues.setdefault(key, deque()).append(waiting)
        self._admit_waiting()  # one that was evicted may have blocked it
        try:
            async with asyncio.timeout(self._max_wait_s):
                await self._wait(waiting)
        except TimeoutError:
            self._num_refused += 1
            raise OverloadedError(f"no place was free for {self._max_wait_s:g} s") from None
        if waiting.evicted:
            self._refuse()
        return Ticket(places, self._give_back_places)

    def stats(self) -> AdmissionStats:
        """The numbers as they are now."""
        waiting = [item for queue in self._queues.values() for item in queue]
        now = time.monotonic()
        oldest = min((item.since for item in waiting), default=now)
        return AdmissionStats(
            self._num_running,
            sum(item.places for item in waiting),
            self._num_refused,
            now - oldest,
        )

    def _free_waiting_places(self, key: str, places: int) -> None:
        """Free waiting places for `key`: evict the newest of keys that hold more than their share.

        Raises OverloadedError if that does not suffice.
        """
        num_waiting = {k: sum(item.places for item in queue) for k, queue in self._queues.items()}
        share = max(1, self._max_waiting // len({*num_waiting, key}))
        num_left = self._max_waiting - sum(num_waiting.values())
        if places > self.max_running or num_waiting.get(key, 0) + places > share:
            self._refuse()
        while num_left < places:
            largest = max(num_waiting, key=lambda k: num_waiting[k], default=key)
            if num_waiting.get(largest, 0) <= share:
                self._refuse()
            last = self._queues[largest][-1]
            self._evict(last)
            num_waiting[largest] -= last.places
            num_left += last.places

    def _refuse(self) -> NoReturn:
        self._num_refused += 1
        raise OverloadedError("the server is at its limit of running and waiting requests")

    def _evict(self, waiting: _Waiting) -> None:
        self._dequeue(waiting)
        waiting.evicted = True
        waiting.decided.set()

    async def _wait(self, waiting: _Waiting) -> None:
        try:
            await waiting.decided.wait()
        except asyncio.CancelledError:
            self._cancel(waiting)
            raise

    def _give_back_places(self, places: int) -> None:
        self._num_running -= places
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._queues:
            key, queue = next(iter(self._queues.items()))
            if self._num_running + queue[0].places > self.max_running:
                return
            first = queue.popleft()
            del self._queues[key]
            if queue:
                self._queues[key] = queue  # the key goes to the end of the round
            self._num_running += first.places
            first.decided.set()

    def _cancel(self, waiting: _Waiting) -> None:
        if waiting.evicted:
            return
        if waiting.decided.is_set():
            self._give_back_places(waiting.places)  # admitted and cancelled in the same turn
            return
        self._dequeue(waiting)
        self._admit_waiting()

    def _dequeue(self, waiting: _Waiting) -> None:
        queue = self._queues[waiting.key]
        queue.remove(waiting)
        if not queue:
            del self._queues[waiting.key]
