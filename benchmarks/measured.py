"""Summarises batches of requests under one load.

A batch is one run of the clients. Times of single requests are pooled over batches. Throughput, CPU
and the slowest first audio are one number per batch; the summary takes their median.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.effort import FIRST_AUDIO_LIMIT_S
from benchmarks.spread import spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Batch:
    """The outcomes of one run of the clients, and the CPU and memory that the server used."""

    outcomes: list[Outcome]
    cpu_s: float
    peak_mb: float | None = None

    @property
    def audio_s(self) -> float:
        """Seconds of audio received in total."""
        return sum(outcome.audio_s for outcome in self.outcomes)

    @property
    def wall_s(self) -> float:
        """Seconds from the first request to the last byte."""
        ends = [outcome.began_s + outcome.ended_s for outcome in self.outcomes]
        return max(ends) - min(outcome.began_s for outcome in self.outcomes)


def is_good(outcome: Outcome) -> bool:
    """Whether it is complete, starts early enough, and has no gap with a buffer of 100 ms."""
    is_early = outcome.first_audio_s is not None and outcome.first_audio_s <= FIRST_AUDIO_LIMIT_S
    return outcome.good and is_early and not outcome.dry_buffered


def summarise(batches: Sequence[Batch]) -> dict[str, Any]:
    """The values of one row. Values that need audio are None if none was received."""
    outcomes = [outcome for batch in batches for outcome in batch.outcomes]
    heard = [outcome for outcome in outcomes if outcome.good and outcome.audio_s]
    with_sound = [batch for batch in batches if batch.audio_s]
    slowest = [_slowest(batch) for batch in with_sound]
    per_batch = [batch.audio_s / batch.wall_s for batch in with_sound]
    cpu = [batch.cpu_s / batch.audio_s for batch in with_sound]
    return {
        "requests": len(outcomes),
        "complete": sum(outcome.good for outcome in outcomes),
        "statuses": dict(Counter(str(outcome.status) for outcome in outcomes)),
        "refused": _share(outcome.status == 429 for outcome in outcomes),
        "failed": _share(not outcome.good and outcome.status != 429 for outcome in outcomes),
        "good": _share(is_good(outcome) for outcome in outcomes),
        "first_audio_s": spread([outcome.first_audio_s or 0.0 for outcome in heard]),
        "first_audio_slowest_s": median(slowest) if slowest else None,
        "heard_s": spread([each.heard_s for each in heard if each.heard_s is not None]),
        "gap_s": spread([gap_s for outcome in heard for gap_s in outcome.gaps_s]),
        "real_time_factor": spread([outcome.ended_s / outcome.audio_s for outcome in heard]),
        "ran_dry": _share(outcome.dry > 0 for outcome in heard),
        "ran_dry_buffered": _share(outcome.dry_buffered > 0 for outcome in heard),
        "silent_s": spread([outcome.silent_s for outcome in heard]),
        "audio_s_each": sum(each.audio_s for each in heard) / len(heard) if heard else None,
        "audio_s_per_s": median(per_batch) if per_batch else None,
        "cpu_s_per_audio_s": median(cpu) if cpu else None,
        "peak_mb": max((batch.peak_mb for batch in batches if batch.peak_mb), default=None),
    }


def _slowest(batch: Batch) -> float:
    return max(outcome.first_audio_s or 0.0 for outcome in batch.outcomes)


def _share(flags: Any) -> float:
    values = list(flags)
    return sum(values) / len(values) if values else 0.0
