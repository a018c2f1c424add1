"""`nano-omni plan`: simulates stage workers under load, to size a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.capacity_simulation import SimulatedLoad, parse_stage, report, simulate
from server.cli.commands.terminal import print_line

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni plan --rate 0.5                    the embedded models, one stream every two seconds
  nano-omni plan --rate 3 --stage talker=2:3:19 --stage code2wav=4:3:24
"""
LOAD_OPTIONS = ("rate", "stream_s", "first_s", "chunk_s", "run_s", "seed", "cells")
# Measured step times of the embedded models: docs/decisions/0006-decoder-context-trimmed.md
DEFAULT_STAGES = ("talker=1:3:19", "code2wav=1:3:24")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stages and the load."""
    parser.add_argument(
        "--stage",
        action="append",
        metavar="NAME=WORKERS:STEP_MS:AUDIO_S_MS[:BATCH]",
        help="a stage; repeat the option in pipeline order. STEP_MS: fixed time of a step. "
        "AUDIO_S_MS: time for each second of audio in it. BATCH: most streams in a step (8). "
        "Default: the stages of the embedded models",
    )
    parser.add_argument("--rate", type=float, required=True, help="streams per second")
    parser.add_argument("--stream-s", type=float, help="seconds of audio in a stream (10)")
    parser.add_argument("--first-s", type=float, help="seconds of audio in its first chunk (0.2)")
    parser.add_argument("--chunk-s", type=float, help="seconds of audio in each other chunk (0.75)")
    parser.add_argument("--run-s", type=float, help="seconds to simulate (60)")
    parser.add_argument("--cells", type=int, help="independent copies of all stages (1)")
    parser.add_argument("--seed", type=int, help="random seed of the arrivals (0)")


def run(options: argparse.Namespace) -> int:
    """Simulate, print the outcome and return the exit status."""
    given = {name: getattr(options, name) for name in LOAD_OPTIONS}
    load = SimulatedLoad(**{name: value for name, value in given.items() if value is not None})
    stages = [parse_stage(text) for text in options.stage or DEFAULT_STAGES]
    print_line(report(simulate(stages, load)))
    return 0
