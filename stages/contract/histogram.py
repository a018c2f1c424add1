"""Histograms for the metrics: values counted in buckets.

Plain numbers that can be pickled and added up across replicas. Knows nothing of Prometheus.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class HistogramCounts:
    """A snapshot of a histogram. `total` is the sum of all values.

    `bounds` are the upper bounds of the buckets, inclusive, in ascending order. `bucket_counts` has
    one count for each bucket, and a last one for values above every bound.
    """

    bounds: tuple[float, ...]
    bucket_counts: tuple[int, ...]
    total: float = 0.0

    def __add__(self, other: HistogramCounts) -> HistogramCounts:
        """The counts of both. ValueError if they have different numbers of buckets."""
        counts = tuple(a + b for a, b in zip(self.bucket_counts, other.bucket_counts, strict=True))
        return HistogramCounts(self.bounds, counts, self.total + other.total)

    @property
    def cumulative(self) -> tuple[int, ...]:
        """The number of values up to each bound, then the number of all values."""
        return tuple(accumulate(self.bucket_counts))


def sum_of(counts: Iterable[HistogramCounts]) -> HistogramCounts:
    """The counts of at least one histogram, added up."""
    return reduce(add, counts)


class Histogram:
    """Counts values in buckets with the upper bounds `bounds`, which are in ascending order."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._bucket_counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self._bucket_counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    @property
    def counts(self) -> HistogramCounts:
        """A snapshot of the counts so far."""
        return HistogramCounts(self._bounds, tuple(self._bucket_counts), self._total)
