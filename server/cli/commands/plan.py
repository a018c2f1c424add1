"""`nano-omni plan`: a layout of workers under load, simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.capacity_simulation import SimulatedLoad, parse_stage, report, simulate
from server.cli.commands.terminal import tell

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni plan --rate 0.5                    the embedded models, a stream every two seconds
  nano-omni plan --rate 3 --stage talker=2:3:19 --stage code2wav=4:3:24
"""
LOAD_OPTIONS = ("rate", "stream_s", "first_s", "chunk_s", "run_s", "seed", "cells")
# As measured: docs/decisions/0006-decoder-context-trimmed.md
DEFAULT_LAYOUT = ("talker=1:3:19", "code2wav=1:3:24")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The layout, and the load."""
    parser.add_argument(
        "--stage",
        action="append",
        metavar="NAME=WORKERS:STEP_MS:AUDIO_S_MS[:BATCH]",
        help="in order; what a step costs at all and per second of audio (the embedded ones)",
    )
    parser.add_argument("--rate", type=float, required=True, help="streams a second")
    parser.add_argument("--stream-s", type=float, help="audio of a stream (10)")
    parser.add_argument("--first-s", type=float, help="audio of its first chunk (0.2)")
    parser.add_argument("--chunk-s", type=float, help="of the others (0.75)")
    parser.add_argument("--run-s", type=float, help="how long streams come (60)")
    parser.add_argument("--cells", type=int, help="how often the layout is there (1)")
    parser.add_argument("--seed", type=int, help="of the arrivals (0)")


def run(options: argparse.Namespace) -> int:
    """Simulate; the exit status."""
    given = {name: getattr(options, name) for name in LOAD_OPTIONS}
    load = SimulatedLoad(**{name: value for name, value in given.items() if value is not None})
    stages = [parse_stage(text) for text in options.stage or DEFAULT_LAYOUT]
    tell(report(simulate(stages, load)))
    return 0
