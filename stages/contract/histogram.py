"""Values counted by size: what the metrics' histograms are made from. Plain numbers, no library."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class HistogramCounts:
    """`sizes` has one place for each bound (values up to it), and one for what is larger."""

    bounds: tuple[float, ...]
    sizes: tuple[int, ...]
    total: float = 0.0

    @classmethod
    def none(cls, bounds: tuple[float, ...]) -> HistogramCounts:
        """Nothing counted yet."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    def __add__(self, other: HistogramCounts) -> HistogramCounts:
        sizes = tuple(a + b for a, b in zip(self.sizes, other.sizes, strict=True))
        return HistogramCounts(self.bounds, sizes, self.total + other.total)

    @property
    def cumulative(self) -> tuple[int, ...]:
        """How many values are at most each bound, and at last how many there are."""
        return tuple(accumulate(self.sizes))


class Histogram:
    """Counts values in buckets."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._sizes = [0] * (len(bounds) + 1)
        self._total = 0.0

    def note(self, value: float) -> None:
        """One more."""
        self._sizes[bisect_left(self._bounds, value)] += 1
        self._total += value

    @property
    def counts(self) -> HistogramCounts:
        """Up to now."""
        return HistogramCounts(self._bounds, tuple(self._sizes), self._total)
