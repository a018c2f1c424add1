"""What must be reached on one H200 with the 1.7B model, and the tables that say what was.

Under arrivals by chance the first audio of 95% of the requests, with every request whole and nobody
running dry; with 64 streams at once their throughput, every request whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """For the row of one `load` at so many streams or arrivals per second."""

    load: str
    at: float
    first_audio_p95_s: float | None = None
    audio_s_per_s: float | None = None

    @property
    def aim(self) -> str:
        """What is to be reached."""
        if self.first_audio_p95_s is not None:
            return f"95% of first audio ≤ {1000 * self.first_audio_p95_s:.0f} ms, none dry"
        return f"≥ {self.audio_s_per_s:.0f} audio s/s"

    def met(self, row: Row) -> bool:
        """Whether the row reaches it."""
        if row["complete"] < row["requests"]:
            return False
        if self.first_audio_p95_s is not None:
            first = row["first_audio_s"]
            early = first is not None and first["p95"] <= self.first_audio_p95_s
            return bool(early and not row["ran_dry"])
        return bool((row["audio_s_per_s"] or 0.0) >= (self.audio_s_per_s or 0.0))


TARGETS = (
    Target("open", 1.0, first_audio_p95_s=0.025),
    Target("open", 10.0, first_audio_p95_s=0.035),
    Target("open", 20.0, first_audio_p95_s=0.075),
    Target("closed", 64, audio_s_per_s=200.0),
)
UNITS = {"open": "per second", "closed": "at once"}


def measured(rows: Sequence[Row]) -> str:
    """Markdown: a line for each row."""
    lines = [
        "| load | first audio, median | 95% | gaps, 95% | audio s/s | ran dry | whole |",
        "|---|---|---|---|---|---|---|",
        *[line(row) for row in rows],
    ]
    return "\n".join(lines) + "\n"


def judged(rows: Sequence[Row]) -> str:
    """Markdown: a line for each target, met or missed."""
    by_load = {(row["load"], row["at"]): row for row in rows}
    lines = ["| load | aim | |", "|---|---|---|"]
    for target in TARGETS:
        row = by_load.get((target.load, target.at))
        verdict = "not measured" if row is None else "met" if target.met(row) else "**missed**"
        lines.append(f"| {_name(target.load, target.at)} | {target.aim} | {verdict} |")
    return "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Its line in `measured`."""
    first, gap = row["first_audio_s"], row["gap_s"]
    cells = [
        _name(row["load"], row["at"]),
        _ms(first and first["median"]),
        _ms(first and first["p95"]),
        _ms(gap and gap["p95"]),
        f"{row['audio_s_per_s'] or 0:.1f}",
        f"{row['ran_dry']:.1%}",
        f"{row['complete']} of {row['requests']}",
    ]
    return f"| {' | '.join(cells)} |"


def _name(load: str, at: float) -> str:
    return f"{at:g} {UNITS[load]}"


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1000 * seconds:.0f} ms"
