"""Writes the short table of a full run into the README, between two comments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.table import ms, number, table

if TYPE_CHECKING:
    from collections.abc import Iterator

README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
HEAD = (
    "server",
    "first audio alone",
    "8 at once, median / slowest",
    "audio s per s at 8",
    "memory at 8 / 64",
    "listeners without a gap",
)


def short_table(results: dict[str, Any]) -> str:
    """The table, with a row for each server."""
    rows = {(row["system"], row["at"]): row for row in results["speech"] if row["load"] == "burst"}
    held = {row["system"]: str(row["listeners"]) for row in results.get("capacity", ())}
    names = list(dict.fromkeys(name for name, _ in rows))
    return table(HEAD, [[name, *_figures(rows, name), held.get(name, "-")] for name in names])


def _figures(rows: dict[tuple[str, float], dict[str, Any]], name: str) -> Iterator[str]:
    alone, eight = rows[name, 1], rows[name, 8]
    first = eight["first_audio_s"]
    yield f"{ms(alone['first_audio_s'], 'median')} ms"
    yield f"{ms(first, 'median')} / {ms(first, 'max')} ms"
    yield number(eight["audio_s_per_s"], 1)
    most = rows.get((name, 64))
    yield f"{number(eight['peak_mb'], 0)} / {number(most and most['peak_mb'], 0)} MB"


def updated(readme: str, results: dict[str, Any]) -> str:
    """The README with this run in it. Raises ValueError if the README lacks the comments."""
    before, _, rest = readme.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the README has no place for the table: add {BEGIN} and {END}")
    machine = results["machine"]
    lines = (
        f"{BEGIN}\n{short_table(results)}\n\n"
        "![Time to first audio, throughput, memory and listeners](benchmarks/results/bench.svg)\n\n"
        f"{machine['processor']}, {machine['cores']} cores, {machine['date']} UTC, revision"
        f" {machine['revision']}.\n{END}"
    )
    return before + lines + after
