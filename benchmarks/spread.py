"""Quantiles of measured values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def quantile(figures: Sequence[float], q: float) -> float:
    """The quantile `q` of the figures, interpolated linearly.

    Raises ValueError if there are no figures or `q` is outside 0 to 1.
    """
    if not figures or not 0.0 <= q <= 1.0:
        raise ValueError(f"no quantile {q} of {len(figures)} figures")
    ordered = sorted(figures)
    position = q * (len(ordered) - 1)
    below, above = ordered[math.floor(position)], ordered[math.ceil(position)]
    return below + (above - below) * (position - math.floor(position))


def spread(figures: Sequence[float]) -> dict[str, float] | None:
    """Number, minimum, median, 95% and 99% quantile and maximum. None without figures."""
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
