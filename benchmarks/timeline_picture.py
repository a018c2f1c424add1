"""Draws a request's timeline, with a lane for each stage and one for the client.

`python -m benchmarks.timeline_picture TIMELINE.json OUT.svg` reads the response of
GET /debug/requests/{id}/timeline. Needs matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COLOURS = {"thinker": "#d55e00", "talker": "#009e73", "code2wav": "#0072b2"}
HEIGHT = 0.5


def draw(timeline: dict[str, Any], path: Path) -> None:
    """Write a picture of the first run of the request."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "timeline"
    from matplotlib import pyplot

    run = timeline["runs"][0]
    stages = run["stages"]
    figure, axes = pyplot.subplots(figsize=(9, 0.9 + 0.7 * len(stages)), layout="constrained")
    for stage in stages:
        _lane(axes, stage)
    _client(axes, timeline, run, len(stages))
    axes.set_yticks(range(len(stages) + 1), [*(stage["name"] for stage in stages), "client"])
    axes.invert_yaxis()
    axes.set_xlim(0, None)
    axes.set_xlabel(
        f"ms since the request was received ({timeline['model']}, {timeline['completion_tokens']} "
        f"tokens, {timeline['audio_ms'] / 1000:.1f} s of audio)"
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)


def _lane(axes: Any, stage: dict[str, Any]) -> None:
    """Waiting in a pale colour, steps in full colour, a tick for each chunk, a line at the end."""
    lane, colour = stage["stage"], COLOURS.get(stage["name"], "#555555")
    begin, end = stage["submitted_ms"], stage["finished_ms"]
    axes.broken_barh([(begin, end - begin)], (lane - HEIGHT / 2, HEIGHT), color=colour, alpha=0.15)
    spans = [(start, stop - start) for start, stop in stage["busy_ms"]]
    axes.broken_barh(spans, (lane - HEIGHT / 2, HEIGHT), color=colour, alpha=0.75)
    ticks = [lane - HEIGHT / 2 - 0.08] * len(stage["emitted_ms"])
    axes.plot(stage["emitted_ms"], ticks, "|", color=colour, markersize=6)
    axes.plot([end], [lane], "k|", markersize=22, markeredgewidth=1.5)


def _client(axes: Any, timeline: dict[str, Any], run: dict[str, Any], lane: int) -> None:
    marks = {
        "first text": timeline["first_token_ms"],
        "first sound": timeline["first_audio_ms"],
        "terminal": run["terminal_ms"],
    }
    for name, at in marks.items():
        if at is not None:
            axes.plot([at], [lane], "kv", markersize=6)
            axes.annotate(name, (at, lane), (5, -3), textcoords="offset points", fontsize=9)
    if run["held"] and run["terminal_ms"] is not None:
        axes.axvspan(run["all_final_ms"], run["terminal_ms"], color="#f0e442", alpha=0.6)


def main() -> None:
    """Read the timeline, and write the picture."""
    source, target = map(Path, sys.argv[1:])
    draw(json.loads(source.read_text()), target)


if __name__ == "__main__":
    main()
