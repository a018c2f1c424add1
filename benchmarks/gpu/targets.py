"""The targets for the 1.7B model on one H200, and the tables of results.

Under Poisson arrivals the target is the time to first audio of 95% of the requests; every request
must be complete and without an underrun. With 64 clients at once the target is throughput; every
request must be complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """A target for one `load`: closed with `at` clients, or open with `at` arrivals per second."""

    load: str
    at: float
    first_audio_p95_s: float | None = None
    audio_s_per_s: float | None = None

    @property
    def description(self) -> str:
        """The target in words."""
        if self.first_audio_p95_s is not None:
            return f"95% of first audio ≤ {1000 * self.first_audio_p95_s:.0f} ms, no underrun"
        return f"≥ {self.audio_s_per_s:.0f} audio s/s"

    def is_met_by(self, row: Row) -> bool:
        """Whether a row of results meets the target."""
        if row["complete"] < row["requests"]:
            return False
        if self.first_audio_p95_s is not None:
            first = row["first_audio_s"]
            in_time = first is not None and first["p95"] <= self.first_audio_p95_s
            return bool(in_time and not row["ran_dry"])
        return bool((row["audio_s_per_s"] or 0.0) >= (self.audio_s_per_s or 0.0))


TARGETS = (
    Target("open", 1.0, first_audio_p95_s=0.025),
    Target("open", 10.0, first_audio_p95_s=0.035),
    Target("open", 20.0, first_audio_p95_s=0.075),
    Target("closed", 64, audio_s_per_s=200.0),
)
UNITS = {"open": "per second", "closed": "at once"}


def result_table(rows: Sequence[Row]) -> str:
    """A Markdown table with a line for each row."""
    lines = [
        "| load | first audio, median | 95% | gaps, 95% | audio s/s | underruns | complete |",
        "|---|---|---|---|---|---|---|",
        *[row_line(row) for row in rows],
    ]
    return "\n".join(lines) + "\n"


def verdict_table(rows: Sequence[Row]) -> str:
    """A Markdown table with a line for each target: met, missed, or not measured."""
    by_load = {(row["load"], row["at"]): row for row in rows}
    lines = ["| load | target | |", "|---|---|---|"]
    for target in TARGETS:
        row = by_load.get((target.load, target.at))
        verdict = (
            "not measured" if row is None else "met" if target.is_met_by(row) else "**missed**"
        )
        lines.append(f"| {_load_name(target.load, target.at)} | {target.description} | {verdict} |")
    return "\n".join(lines) + "\n"


def row_line(row: Row) -> str:
    """The line of a row in `result_table`."""
    first, gap = row["first_audio_s"], row["gap_s"]
    cells = [
        _load_name(row["load"], row["at"]),
        _ms(first and first["median"]),
        _ms(first and first["p95"]),
        _ms(gap and gap["p95"]),
        f"{row['audio_s_per_s'] or 0:.1f}",
        f"{row['ran_dry']:.1%}",
        f"{row['complete']} of {row['requests']}",
    ]
    return f"| {' | '.join(cells)} |"


def _load_name(load: str, at: float) -> str:
    return f"{at:g} {UNITS[load]}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f} ms"
