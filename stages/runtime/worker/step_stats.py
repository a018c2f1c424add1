"""What a worker reports of its steps: how long they took, how many requests each advanced, and when
it worked for which request. It travels with the other reports, a few times a second at most.

A worker's times are of its machine's clock. Its executor maps them to its own clock (`ClockMap`).
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from stages.contract.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stages.contract.histogram import HistogramCounts

ServerT = TypeVar("ServerT")

STEP_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
BATCH_BOUNDS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)

REPORT_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a worker, as it is reported to one server.

    The step advanced `num_requests`. `num_chunks` has those of this server, by position and request
    id, with the number of chunks that each emitted. Where several servers share the worker, only
    one of them adds the step to its statistics (`counts`).
    """

    began_at: float
    ended_at: float
    num_requests: int
    num_chunks: Mapping[tuple[int, str], int]
    counts: bool = True


@dataclass(frozen=True, slots=True)
class StepReport:
    """The steps since the last report, sent at `sent_at` of the worker's clock."""

    sent_at: float
    steps: Sequence[Step]

    def by_server(self, server_of: Callable[[str], ServerT | None]) -> dict[ServerT, StepReport]:
        """Each server's part. The server whose request comes first in a step counts that step."""
        parts: dict[ServerT, list[Step]] = {}
        for step in self.steps:
            chunks: dict[ServerT, dict[tuple[int, str], int]] = {}
            for key, num in step.num_chunks.items():
                if (server := server_of(key[1])) is not None:
                    chunks.setdefault(server, {})[key] = num
            for n, (server, own) in enumerate(chunks.items()):
                part = replace(step, num_chunks=own, counts=n == 0)
                parts.setdefault(server, []).append(part)
        return {server: StepReport(self.sent_at, steps) for server, steps in parts.items()}


class StepStats:
    """Statistics of a worker's steps that this server counts, since the server began."""

    def __init__(self) -> None:
        self._step_s = Histogram(STEP_BOUNDS_S)
        self._batch_size = Histogram(BATCH_BOUNDS)

    def add(self, step: Step) -> None:
        """Count one more step."""
        self._step_s.observe(step.ended_at - step.began_at)
        self._batch_size.observe(step.num_requests)

    @property
    def step_s(self) -> HistogramCounts:
        """How long the steps took."""
        return self._step_s.counts

    @property
    def batch_size(self) -> HistogramCounts:
        """How many requests each step advanced."""
        return self._batch_size.counts


class StepLog:
    """The steps that a worker has not reported yet. Belongs to the worker's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._steps: list[Step] = []
        self._reported_at = self._added_at = clock()

    @property
    def is_due(self) -> bool:
        """Whether there are steps, and the last report is long enough ago."""
        return bool(self._steps) and self._added_at - self._reported_at >= REPORT_EVERY_S

    def add(self, began_at: float, num_chunks: Mapping[tuple[int, str], int]) -> None:
        """A step ends now. `num_chunks`: the requests that it advanced, as in `Step`."""
        self._added_at = self.clock()
        self._steps.append(Step(began_at, self._added_at, len(num_chunks), num_chunks))

    def take_report(self) -> StepReport:
        """A report of the steps since the last one. It may have none."""
        self._reported_at = self.clock()
        steps, self._steps = self._steps, []
        return StepReport(self._reported_at, steps)


class ClockMap:
    """Maps a worker's clock to ours, by the message that arrived soonest after it was sent.

    On one machine the offset is the time that a message takes. From another machine it includes the
    difference of the clocks. A mapped time is never later than the arrival of its message.
    """

    def __init__(self) -> None:
        self._offset_s: float | None = None

    def offset_s(self, sent_at: float, now: float) -> float:
        """What to add to the worker's times, given a message that has arrived now."""
        late_s = now - sent_at
        self._offset_s = late_s if self._offset_s is None else min(self._offset_s, late_s)
        return self._offset_s
