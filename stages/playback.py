"""Whose listener runs dry first: the order in which a stage that makes sound serves its requests.

A listener is taken to start at the first emission and to play without a gap. Requests that have
emitted nothing are next, oldest first, unless that makes a listener wait too long: each is served
in time if, in the order in which they run dry, there is a step's time for each of them before it
does. So a burst of newcomers is heard at once, and does not break what is being heard.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FIRST_STEP_S = 0.02
_WEIGHT = 0.1  # of a new step in the mean


@dataclass(slots=True)
class _Listener:
    opened_s: float
    started_s: float | None = None
    emitted_s: float = 0.0


@dataclass(slots=True)
class Playback:
    """What each open request has emitted, and since when. `clock` gives seconds; `margin_s` is for
    what comes after the step: other stages, and the way to the listener."""

    clock: Callable[[], float] = time.monotonic
    margin_s: float = 0.08
    _listeners: dict[str, _Listener] = field(default_factory=dict)
    _chosen_s: float = 0.0
    _step_s: float = _FIRST_STEP_S  # mean time from the choice of a request to its emission

    def open(self, request_id: str) -> None:
        """Begin to count a request."""
        self._listeners[request_id] = _Listener(self.clock())

    def close(self, request_id: str) -> None:
        """Forget a request."""
        del self._listeners[request_id]

    @property
    def num_newcomers(self) -> int:
        """Requests that have emitted nothing."""
        return sum(listener.started_s is None for listener in self._listeners.values())

    def emit(self, request_id: str, seconds: float) -> None:
        """Count sound that is emitted now, by the step of the request that was chosen last."""
        listener = self._listeners[request_id]
        now_s = self.clock()
        self._step_s += _WEIGHT * (now_s - self._chosen_s - self._step_s)
        if listener.started_s is None:
            listener.started_s = now_s
        listener.emitted_s += seconds

    def most_urgent(self, request_ids: Iterable[str]) -> str:
        """Which of some open requests to serve now; ValueError if there are none."""
        now_s = self._chosen_s = self.clock()
        newcomers: list[tuple[float, str]] = []
        listeners: list[tuple[float, str]] = []
        for request_id in request_ids:
            listener = self._listeners[request_id]
            if listener.started_s is None:
                newcomers.append((listener.opened_s, request_id))
            else:
                left_s = listener.started_s + listener.emitted_s - now_s
                listeners.append((left_s, request_id))
        if newcomers and self._can_wait(listeners):
            return min(newcomers)[1]
        return min(listeners)[1]

    def _can_wait(self, listeners: list[tuple[float, str]]) -> bool:
        """Whether all listeners are served in time if one more step comes before theirs."""
        listeners.sort()
        return all(
            left_s > self.margin_s + (place + 2) * self._step_s
            for place, (left_s, _) in enumerate(listeners)
        )
