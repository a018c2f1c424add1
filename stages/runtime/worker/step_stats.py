"""What a worker tells of its work: how long its steps took, how many requests each advanced, and
when it worked for which request. It travels with the reports, a few times a second at most.

A worker's times are of its machine's clock; its executor maps them to its own (`ClockMap`).
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

TELL_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a worker, as one server is told of it.

    It advanced `num_requests`; the server's own of these, by face and id, with `num_chunks`. Where
    several servers share the worker, only one of them is to count the step (`counts`).
    """

    began_at: float
    ended_at: float
    num_requests: int
    num_chunks: Mapping[tuple[int, str], int]
    counts: bool = True


@dataclass(frozen=True, slots=True)
class StepReport:
    """What a worker tells at `sent_at`: its new steps."""

    sent_at: float
    steps: Sequence[Step]

    def by_server(self, server_of: Callable[[str], ServerT | None]) -> dict[ServerT, StepReport]:
        """Each server's part. The one whose request was advanced first counts the step."""
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
    """The steps of a worker that this server counts, since it began."""

    def __init__(self) -> None:
        self._step_s = Histogram(STEP_BOUNDS_S)
        self._batch_size = Histogram(BATCH_BOUNDS)

    def note(self, step: Step) -> None:
        """One more."""
        self._step_s.observe(step.ended_at - step.began_at)
        self._batch_size.observe(step.num_requests)

    @property
    def step_s(self) -> HistogramCounts:
        """How long they took."""
        return self._step_s.counts

    @property
    def batch_size(self) -> HistogramCounts:
        """How many requests each advanced."""
        return self._batch_size.counts


class StepLog:
    """A worker's side: it notes each step, and says when it is time to tell."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._steps: list[Step] = []
        self._told_at = self._noted_at = clock()

    @property
    def is_due(self) -> bool:
        """Whether something has waited long enough to be told."""
        return bool(self._steps) and self._noted_at - self._told_at >= TELL_EVERY_S

    def note(self, began_at: float, num_chunks: Mapping[tuple[int, str], int]) -> None:
        """A step is over: the requests that it advanced, by face, and their chunks."""
        self._noted_at = self.clock()
        self._steps.append(Step(began_at, self._noted_at, len(num_chunks), num_chunks))

    def tell(self) -> StepReport:
        """What there is to tell; steps are told once."""
        self._told_at = self.clock()
        steps, self._steps = self._steps, []
        return StepReport(self._told_at, steps)


class ClockMap:
    """How a worker's clock relates to ours: by the quickest message seen.

    On one machine that is the time that a message takes; from another it has the difference of the
    clocks in it. What is mapped never lies after the arrival of the message that told of it.
    """

    def __init__(self) -> None:
        self._ahead_s: float | None = None

    def ahead_s(self, sent_at: float, now: float) -> float:
        """What is to be added to the worker's times, given a message that has come now."""
        late_s = now - sent_at
        self._ahead_s = late_s if self._ahead_s is None else min(self._ahead_s, late_s)
        return self._ahead_s
