"""The benchmark: `python -m benchmarks [--quick] [--only PART ...] [--record]`.

Starts and stops our server and its rivals in turn, writes JSON, tables and plots to `results/`, and
prints which targets are met. `--record` makes this run the baseline of `benchmarks.compare`.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.capacity import Capacity
from benchmarks.chat import measure_chat
from benchmarks.compare import BASELINE, RESULTS, baseline_of
from benchmarks.control_path import measure_control_path
from benchmarks.effort import FULL, QUICK
from benchmarks.machine import describe
from benchmarks.plots import plot
from benchmarks.processes import freeze
from benchmarks.readme import README, updated
from benchmarks.speech import Speech
from benchmarks.systems import BFLOAT16, OURS, PIPER, all_systems
from benchmarks.table import markdown
from benchmarks.targets import summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.effort import Effort
    from benchmarks.systems import System

PARTS = ("speech", "capacity", "chat", "control")
CAPACITY_SYSTEMS = (OURS, BFLOAT16)  # the systems whose number of listeners is measured


def main() -> None:
    """Measure the parts, store the results, and print them."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped
    effort = QUICK if options.quick else FULL
    stem = RESULTS.with_name("quick") if options.quick else RESULTS.with_suffix("")
    stem.parent.mkdir(exist_ok=True)
    results: dict[str, Any] = {"machine": describe()}
    for part in measure(effort, options.only or PARTS):  # stored part by part: a run takes long
        results |= part
        stem.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    stem.with_suffix(".md").write_text(markdown(results))
    plot(results, stem)
    if not options.quick and "speech" in results:
        README.write_text(updated(README.read_text(), results))
    if options.record:
        BASELINE.write_text(json.dumps(baseline_of(results), indent=1) + "\n")
    print(markdown(results))
    print(summary(results))


def measure(effort: Effort, parts: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Measure the requested parts, the short ones first.

    The part `capacity` needs the rows of `speech`, and is skipped without them.
    """
    if "control" in parts:
        yield {"control_path": measure_control_path(effort)}
    if "chat" in parts:
        yield {"chat": measure_chat(effort)}
    if "speech" in parts:
        systems = all_systems(effort.max_running)
        yield {"rivals": {each.name: each.versions for each in systems if not each.is_ours}}
        rows = Speech(systems, effort).measure()
        yield {"speech": rows}
        if "capacity" in parts and effort.probes:
            yield {"capacity": _capacity(systems, rows, effort)}


def _capacity(
    systems: list[System], rows: list[dict[str, Any]], effort: Effort
) -> list[dict[str, Any]]:
    found = []
    reference = next(system for system in systems if system.name == PIPER)
    with reference.serving() as piper:
        freeze(piper.pid)
        for system in systems:
            if system.name in CAPACITY_SYSTEMS:
                made = [
                    row
                    for row in rows
                    if row["system"] == system.name and row["load"] == "burst" and row["at"] >= 8
                ]
                throughput = max(row["audio_s_per_s"] for row in made)
                capacity = Capacity(system, piper, effort)
                found.append(capacity.measure(throughput, made[0]["audio_s_each"]))
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("benchmarks")
    parser.add_argument("--quick", action="store_true", help="1 and 8 concurrent requests only")
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure only these parts")
    parser.add_argument("--record", action="store_true", help="store the ratios as the baseline")
    return parser.parse_args()


if __name__ == "__main__":
    main()
