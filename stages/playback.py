"""Whose listener runs dry first: the order in which a stage that makes sound serves its requests.

A listener is taken to start at the first emission and to play without a gap. Requests that have
emitted nothing are next, oldest first, but not before listeners who have less than `GUARD_S` left:
a burst of newcomers does not break what is being heard.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

GUARD_S = 0.3


@dataclass(slots=True)
class _Listener:
    opened_s: float
    started_s: float | None = None
    emitted_s: float = 0.0


@dataclass(slots=True)
class Playback:
    """What each open request has emitted, and since when. `clock` gives seconds."""

    clock: Callable[[], float] = time.monotonic
    _listeners: dict[str, _Listener] = field(default_factory=dict)

    def open(self, request_id: str) -> None:
        """Begin to count a request."""
        self._listeners[request_id] = _Listener(self.clock())

    def close(self, request_id: str) -> None:
        """Forget a request."""
        del self._listeners[request_id]

    def emitted_s(self, request_id: str) -> float:
        """Seconds of sound that the request has emitted."""
        return self._listeners[request_id].emitted_s

    def emit(self, request_id: str, seconds: float) -> None:
        """Count sound that is emitted now."""
        listener = self._listeners[request_id]
        if listener.started_s is None:
            listener.started_s = self.clock()
        listener.emitted_s += seconds

    def left_s(self, request_id: str) -> float:
        """Seconds of sound that the request's listener still has; 0 before the first."""
        listener = self._listeners[request_id]
        if listener.started_s is None:
            return 0.0
        return max(0.0, listener.started_s + listener.emitted_s - self.clock())

    def most_urgent_first(self, request_ids: Iterable[str]) -> list[str]:
        """Some open requests in the order in which to serve them."""
        now_s = self.clock()
        return sorted(request_ids, key=lambda request_id: self._urgency(request_id, now_s))

    def most_urgent(self, request_ids: Iterable[str]) -> str:
        """Which of some open requests to serve now; ValueError if there are none."""
        now_s = self.clock()
        return min(request_ids, key=lambda request_id: self._urgency(request_id, now_s))

    def _urgency(self, request_id: str, now_s: float) -> tuple[int, float]:
        listener = self._listeners[request_id]
        if listener.started_s is None:
            return 1, listener.opened_s
        left_s = listener.started_s + listener.emitted_s - now_s
        return (0 if left_s < GUARD_S else 2), left_s
