"""Plots the results as one figure with four panels, as PNG and SVG. Needs matplotlib."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.systems import BFLOAT16, LITSERVE, OURS, PIPER, PROCESSES

if TYPE_CHECKING:
    from pathlib import Path

STYLES = {
    PIPER: ("#7f7f7f", "s"),
    LITSERVE: ("#d55e00", "^"),
    OURS: ("#0072b2", "o"),
    PROCESSES: ("#56b4e9", "v"),
    BFLOAT16: ("#009e73", "D"),
}
SHADED = (PIPER, LITSERVE, OURS)  # more would hide each other
GRID = {"color": "#dddddd", "linewidth": 0.8}


def plot(results: dict[str, Any], stem: Path) -> None:
    """Write `stem`.png and `stem`.svg. Without speech rows, write nothing."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "bench"
    from matplotlib import pyplot

    if not results.get("speech"):
        return
    figure, axes = pyplot.subplots(2, 2, figsize=(10.5, 7.5), layout="constrained")
    bursts = [row for row in results["speech"] if row["load"] == "burst" and row["first_audio_s"]]
    _first_audio(axes[0][0], bursts)
    _lines(axes[0][1], bursts, "audio_s_per_s", "Throughput", "audio seconds per second")
    _lines(axes[1][0], bursts, "peak_mb", "Memory of the whole process tree", "MB, peak")
    _listeners(axes[1][1], results)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    machine = results["machine"]
    figure.supxlabel(
        f"{machine['processor']}, {machine['cores']} cores, the same voice; {machine['date']} UTC",
        fontsize=8,
        color="#555555",
    )
    for ending in ("png", "svg"):
        figure.savefig(f"{stem}.{ending}", dpi=130, metadata=_metadata(ending))
    pyplot.close(figure)


def _metadata(ending: str) -> dict[str, None]:
    return {"Date": None} if ending == "svg" else {}


def _by_system(rows: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    return [
        (name, chosen)
        for name in STYLES
        if (chosen := sorted((r for r in rows if r["system"] == name), key=lambda row: row["at"]))
    ]


def _first_audio(axes: Any, rows: list[dict[str, Any]]) -> None:
    for name, chosen in _by_system(rows):
        color, marker = STYLES[name]
        at = [row["at"] for row in chosen]
        median, most = (
            [1000 * row["first_audio_s"][part] for row in chosen] for part in ("median", "max")
        )
        axes.plot(at, median, color=color, marker=marker, label=name, markersize=5)
        if name in SHADED:
            axes.fill_between(at, median, most, color=color, alpha=0.15, linewidth=0)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_title("Time to first audio: median, shaded up to the slowest", fontsize=10)
    axes.set_ylabel("ms")
    _concurrency(axes, rows)


def _lines(axes: Any, rows: list[dict[str, Any]], part: str, title: str, unit: str) -> None:
    for name, chosen in _by_system(rows):
        color, marker = STYLES[name]
        at = [row["at"] for row in chosen]
        axes.plot(at, [row[part] for row in chosen], color=color, marker=marker, markersize=5)
    axes.set_ylim(0, None)
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(unit)
    _concurrency(axes, rows)


def _concurrency(axes: Any, rows: list[dict[str, Any]]) -> None:
    at = sorted({row["at"] for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(at, [f"{num:g}" for num in at])
    axes.set_xlabel("concurrent requests")
    axes.grid(**GRID)
    axes.spines[["top", "right"]].set_visible(False)


def _listeners(axes: Any, results: dict[str, Any]) -> None:
    rows = results.get("capacity")
    axes.set_title("Listeners served without a gap", fontsize=10)
    if not rows:
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes, color="#888888")
        axes.set_axis_off()
        return
    bars = axes.barh(
        [row["system"] for row in rows],
        [row["listeners"] for row in rows],
        color=[STYLES[row["system"]][0] for row in rows],
        height=0.55,
    )
    axes.bar_label(bars, padding=4, fontsize=9)
    line = median(row["reference_audio_s_per_s"] for row in rows)
    axes.axvline(line, color=STYLES[PIPER][0], linestyle="--", linewidth=1.2)
    axes.annotate(
        f"piper's throughput: {line:.1f}",
        (line, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-4, -10),
        textcoords="offset points",
        ha="right",
        fontsize=8,
        color="#555555",
    )
    axes.margins(x=0.12, y=0.25)
    axes.set_xlabel("concurrent listeners, each with a buffer of 100 ms")
    axes.grid(axis="x", **GRID)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
