"""Median, 95th and 99th percentile, and the ends, of some figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def quantile(figures: Sequence[float], q: float) -> float:
    """The value that a share `q` of the figures does not exceed, interpolated linearly.

    ValueError where there are no figures, or `q` is outside 0 to 1.
    """
    if not figures or not 0.0 <= q <= 1.0:
        raise ValueError(f"no quantile {q} of {len(figures)} figures")
    ordered = sorted(figures)
    place = q * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def spread(figures: Sequence[float]) -> dict[str, float] | None:
    """The usual five and how many there are; None where there are none."""
    if not figures:
        return None
    return {
        "num": len(figures),
        "min": min(figures),
        "median": quantile(figures, 0.5),
        "p95": quantile(figures, 0.95),
        "p99": quantile(figures, 0.99),
        "max": max(figures),
    }
