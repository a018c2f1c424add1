"""Is there room? `max_running` requests run, `max_waiting` wait for a time, and the rest are told.

Waiting requests start round-robin by key, first come first served within a key; a key may hold its
share of the waiting places, and more until another key asks for its own. Shared by all
orchestrators of a server. Belongs to the event loop.
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
    """What metrics show. `oldest_wait_s` is how long the first in line has waited."""

    num_running: int
    num_waiting: int
    num_refused: int
    oldest_wait_s: float


@dataclass(slots=True)
class Ticket:
    """The right to run `places` requests; given back once, by `release`."""

    places: int
    _give_back: Callable[[int], None]
    _held: bool = True

    def release(self) -> None:
        """Give the places back; a second call does nothing."""
        if self._held:
            self._held = False
            self._give_back(self.places)

    def split(self) -> list[Ticket]:
        """The same places as tickets of one place each; this one is spent."""
        self._held = False
        return [Ticket(1, self._give_back) for _ in range(self.places)]


@dataclass(slots=True)
class _Waiting:
    key: str
    places: int
    told: asyncio.Event = field(default_factory=asyncio.Event)
    since: float = field(default_factory=time.monotonic)
    turned_away: bool = False  # else admitted, once told


class Admission:
    """See above. A key is whatever stands for a caller; without keys all have the same.

    `max_running` may be set while nobody is in. Nobody waits longer than `max_wait_s`.
    """

    def __init__(self, max_running: int, max_waiting: int, max_wait_s: float | None = None) -> None:
        self.max_running = max_running
        self._max_waiting = max_waiting
        self._max_wait_s = max_wait_s
        self._num_running = 0
        self._num_refused = 0
        self._lines: dict[str, deque[_Waiting]] = {}  # in the order in which keys are served

    async def enter(self, key: str = "", places: int = 1) -> Ticket:
        """Wait for `places` at once. OverloadedError where there is no room to wait, or none to run
        in time.

        A call that is cancelled while it waits leaves the line.
        """
        if not self._lines and self._num_running + places <= self.max_running:
            self._num_running += places
            return Ticket(places, self._leave)
        self._make_room(key, places)
        waiting = _Waiting(key, places)
        self._lines.setdefault(key, deque()).append(waiting)
        self._admit_waiting()  # one that was turned away may have been in the way
        try:
            async with asyncio.timeout(self._max_wait_s):
                await self._turn(waiting)
        except TimeoutError:
            self._num_refused += 1
            raise OverloadedError(f"no place was free for {self._max_wait_s:g} s") from None
        if waiting.turned_away:
            self._refuse()
        return Ticket(places, self._leave)

    def stats(self) -> AdmissionStats:
        """Counts, now."""
        waiting = [item for line in self._lines.values() for item in line]
        now = time.monotonic()
        oldest = min((item.since for item in waiting), default=now)
        return AdmissionStats(
            self._num_running,
            sum(item.places for item in waiting),
            self._num_refused,
            now - oldest,
        )

    def _make_room(self, key: str, places: int) -> None:
        """In the line, where the last of a key with more than its share go. OverloadedError."""
        num_waiting = {k: sum(item.places for item in line) for k, line in self._lines.items()}
        share = max(1, self._max_waiting // len({*num_waiting, key}))
        num_left = self._max_waiting - sum(num_waiting.values())
        if places > self.max_running or num_waiting.get(key, 0) + places > share:
            self._refuse()
        while num_left < places:
            greedy = max(num_waiting, key=lambda k: num_waiting[k], default=key)
            if num_waiting.get(greedy, 0) <= share:
                self._refuse()
            last = self._lines[greedy][-1]
            self._turn_away(last)
            num_waiting[greedy] -= last.places
            num_left += last.places

    def _refuse(self) -> NoReturn:
        self._num_refused += 1
        raise OverloadedError("the server is at its limit of running and waiting requests")

    def _turn_away(self, waiting: _Waiting) -> None:
        self._drop(waiting)
        waiting.turned_away = True
        waiting.told.set()

    async def _turn(self, waiting: _Waiting) -> None:
        try:
            await waiting.told.wait()
        except asyncio.CancelledError:
            self._withdraw(waiting)
            raise

    def _leave(self, places: int) -> None:
        self._num_running -= places
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._lines:
            key, line = next(iter(self._lines.items()))
            if self._num_running + line[0].places > self.max_running:
                return
            first = line.popleft()
            del self._lines[key]
            if line:
                self._lines[key] = line  # the key goes to the end of the round
            self._num_running += first.places
            first.told.set()

    def _withdraw(self, waiting: _Waiting) -> None:
        if waiting.turned_away:
            return
        if waiting.told.is_set():
            self._leave(waiting.places)  # admitted and cancelled in the same turn
            return
        self._drop(waiting)
        self._admit_waiting()

    def _drop(self, waiting: _Waiting) -> None:
        line = self._lines[waiting.key]
        line.remove(waiting)
        if not line:
            del self._lines[waiting.key]
