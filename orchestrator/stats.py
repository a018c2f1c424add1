"""What an orchestrator counts. Metrics and tests read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from stages.contract.histogram import Histogram

ABORT_BOUNDS_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5)
HOLD_BOUNDS_S = (0.0, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0)


@dataclass(slots=True)
class StageStats:
    """Of one stage: dropped late outputs, aborts, and aborts without an answer in time."""

    num_dropped: int = 0
    num_aborts: int = 0
    num_silent: int = 0
    abort_s: Histogram = field(default_factory=partial(Histogram, ABORT_BOUNDS_S))


class OrchestratorStats:
    """Of all requests. `hold_s`: how long the gate held each terminal; 0 for most."""

    def __init__(self, num_stages: int) -> None:
        self.stages = tuple(StageStats() for _ in range(num_stages))
        self.hold_s = Histogram(HOLD_BOUNDS_S)
        self.num_drain_timeouts = 0
