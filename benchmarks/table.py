"""Formats the results as markdown tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def markdown(results: dict[str, Any]) -> str:
    """All tables, below a line that describes the machine."""
    machine = results["machine"]
    measured_on = (
        f"{machine['processor']}, {machine['cores']} cores ({', '.join(machine['flags'])}),"
        f" {machine['date']} UTC, revision {machine['revision']},"
        f" load average before {machine['load_before']:.1f}."
    )
    parts = [measured_on]
    if rows := results.get("speech"):
        for load in ("burst", "closed", "open"):
            chosen = [row for row in rows if row["load"] == load]
            if chosen:
                parts += [_TITLES[load], _speech(chosen)]
    if rows := results.get("capacity"):
        parts += ["Listeners that play without a pause:", _capacity(rows)]
    if chat := results.get("chat"):
        parts += ["Chats:", _chat(chat)]
    if path := results.get("control_path"):
        parts += ["CPU per audio event of 100 ms, microseconds:", _control_path(path)]
    return "\n\n".join(parts) + "\n"


_TITLES = {
    "burst": "Concurrent requests of 200 characters each (column `at`):",
    "closed": "Concurrent clients, each of which sends its next request at once (column `at`):",
    "open": "Poisson arrivals, as a share of the throughput of piper's server (column `at`):",
}
_SPEECH_HEAD = (
    "server",
    "at",
    "first audio, median / 95% / 99% / max, ms",
    "audible, median, ms",
    "audio s per s",
    "real-time factor, median",
    "ran dry, with 100 ms buffer",
    "gaps, 95% / 99%, ms",
    "memory, MB",
    "CPU s per audio s",
    "refused / failed",
    "admission",
)


def _speech(rows: list[dict[str, Any]]) -> str:
    return table(_SPEECH_HEAD, [list(_speech_row(row)) for row in rows])


def _speech_row(row: dict[str, Any]) -> Iterator[str]:
    first, gaps = row["first_audio_s"], row["gap_s"]
    yield row["system"]
    yield f"{row['at']:g}"
    yield " / ".join(ms(first, part) for part in ("median", "p95", "p99", "max"))
    yield ms(row["heard_s"], "median")
    yield number(row["audio_s_per_s"], 1)
    yield number(row["real_time_factor"] and row["real_time_factor"]["median"], 3)
    yield f"{row['ran_dry']:.0%}, {row['ran_dry_buffered']:.0%}"
    yield " / ".join(ms(gaps, part) for part in ("p95", "p99"))
    yield number(row["peak_mb"], 0)
    yield number(row["cpu_s_per_audio_s"], 4)
    yield f"{row['refused']:.0%} / {row['failed']:.0%}"
    admission = row["admission"]
    yield f"{admission['max_running']} + {admission['max_waiting']}" if admission else "none"


def _capacity(rows: list[dict[str, Any]]) -> str:
    head = (
        "server",
        "listeners without a gap, 100 ms buffer",
        "without a buffer",
        "piper's audio s per s meanwhile",
        "at twice its throughput: refused",
        "of the admitted ran dry, with 100 ms buffer",
    )
    return table(head, [list(_capacity_row(row)) for row in rows])


def _capacity_row(row: dict[str, Any]) -> Iterator[str]:
    beyond = row["beyond"]
    yield row["system"]
    yield str(row["listeners"])
    yield str(row["listeners_without_buffer"])
    yield number(row["reference_audio_s_per_s"], 1)
    yield f"{beyond['refused']:.0%}" if beyond else "-"
    yield f"{beyond['ran_dry']:.0%}, {beyond['ran_dry_buffered']:.0%}" if beyond else "-"


def _chat(chat: dict[str, Any]) -> str:
    head = (
        "",
        "tokens/s alone",
        "of 8 at once",
        "first token, ms",
        "voice: first audio, ms",
        "8 voices: first audio, ms",
        "ran dry, with 100 ms buffer",
        "delay after the first clause / speech",
    )
    alone = number(chat["llama.cpp"]["tokens_per_s"], 1)
    rows = [["llama.cpp alone", alone, *["-"] * 6]]
    for row in chat["rows"]:
        crowd = row["voice_together"]
        rows.append(
            [
                f"nano-omni, {row['dtype']}",
                number(row["tokens_per_s"], 1),
                number(row["together_tokens_per_s"], 1),
                ms(row["first_token_s"], "median"),
                ms(row["voice"]["first_audio_s"], "median"),
                ms(crowd["first_audio_s"], "median"),
                f"{crowd['ran_dry']:.0%}, {crowd['ran_dry_buffered']:.0%}",
                number(row["delay_over_speech"], 2),
            ]
        )
    return table(head, rows)


def _control_path(path: dict[str, Any]) -> str:
    rows = [
        [name, number(path[name]["loop_us"], 1), number(path[name]["process_us"], 1)]
        for name in ("sse-starlette default", "nano-omni")
    ]
    return table(("", "event loop", "whole process"), rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def ms(spread: dict[str, float] | None, part: str) -> str:
    """A part of a spread of seconds, in milliseconds."""
    return "-" if spread is None else f"{1000 * spread[part]:.0f}"


def number(value: float | None, digits: int) -> str:
    """A number with so many digits after the point, or a dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"
