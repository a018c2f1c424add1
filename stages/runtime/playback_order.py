"""The order in which a stage that makes sound serves its requests: by playback deadline.

Each listener has a `JitterBuffer` without delay: playback starts with the first emission, and after
an underrun it resumes with the next one. Requests that have emitted nothing (newcomers) go first,
oldest first, as long as every listener is still served in time. A listener is in time if there is a
step's time for it, and for each listener that runs dry before it, until it runs dry. So a burst of
newcomers is heard at once, and interrupts nobody.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.jitter_buffer import JitterBuffer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_FIRST_STEP_S = 0.02  # assumed until steps were measured
_WEIGHT = 0.1  # of a new step in the mean


@dataclass(slots=True)
class _Listener(JitterBuffer):
    opened_s: float = 0.0


@dataclass(slots=True)
class Playback:
    """How much sound each open request has emitted, and when its listener runs dry.

    `clock` gives seconds. `margin_s` is the time that a sound needs after the step: for the stages
    that follow, and to reach the listener. `step_s` is the mean time from the choice of a request
    to its emission.
    """

    clock: Callable[[], float] = time.monotonic
    margin_s: float = 0.08
    _listeners: dict[str, _Listener] = field(default_factory=dict)
    _chosen_s: float = 0.0
    _is_timing: bool = False  # whether the present step's time is still to be counted
    step_s: float = _FIRST_STEP_S

    def open(self, request_id: str) -> None:
        """Begin with a request: it is a newcomer."""
        self._listeners[request_id] = _Listener(opened_s=self.clock())

    def close(self, request_id: str) -> None:
        """Forget a request."""
        del self._listeners[request_id]

    def is_newcomer(self, request_id: str) -> bool:
        """Whether the request has emitted nothing."""
        return self._listeners[request_id].empty_at_s is None

    def emit(self, request_id: str, seconds: float) -> None:
        """Add sound that the request emits now, in the step that began with the last choice.

        The step's time is counted once, however many requests the step serves.
        """
        now_s = self.clock()
        if self._is_timing:
            self.step_s += _WEIGHT * (now_s - self._chosen_s - self.step_s)
            self._is_timing = False
        self._listeners[request_id].push(seconds, now_s)

    def left_s(self, request_id: str) -> float:
        """Seconds of sound that the request's listener still has to play. 0 for a newcomer."""
        empty_at_s = self._listeners[request_id].empty_at_s
        return 0.0 if empty_at_s is None else max(0.0, empty_at_s - self.clock())

    def most_urgent(self, request_ids: Iterable[str]) -> str:
        """The one of these open requests to serve now. There must be at least one."""
        return self.most_urgent_first(request_ids)[0]

    def most_urgent_first(self, request_ids: Iterable[str]) -> list[str]:
        """These open requests in the order in which to serve them, beginning now."""
        self._chosen_s = self.clock()
        self._is_timing = True
        newcomers: list[tuple[float, str]] = []
        listeners: list[tuple[float, str]] = []
        for request_id in request_ids:
            listener = self._listeners[request_id]
            if listener.empty_at_s is None:
                newcomers.append((listener.opened_s, request_id))
            else:
                listeners.append((listener.empty_at_s, request_id))
        newcomers.sort()
        listeners.sort()
        spare_s = self._spare_s(dry_s for dry_s, _ in listeners)
        num_before = sum((n + 1) * self.step_s < spare_s for n in range(len(newcomers)))
        order = newcomers[:num_before] + listeners + newcomers[num_before:]
        return [request_id for _, request_id in order]

    def _spare_s(self, dry_s: Iterable[float]) -> float:
        """How long all listeners can wait and still be served in time. `dry_s` is in order."""
        ready_s = self._chosen_s + self.margin_s
        waits = (at_s - ready_s - place * self.step_s for place, at_s in enumerate(dry_s, 1))
        return min(waits, default=math.inf)
