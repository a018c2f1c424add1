"""Compares results with the recorded baseline. Uses ratios only, so machines may differ in speed.

`python -m benchmarks.compare [RESULTS] [BASELINE]` exits with 1 if a ratio got worse by more than
the tolerance.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.targets import TARGETS, figures

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "bench.json"
BASELINE = HERE / "baseline.json"
TOLERANCE = 0.15


def baseline_of(results: dict[str, Any]) -> dict[str, Any]:
    """The baseline to record: the ratios, and the machine and revision that they come from."""
    ratios = {target.name for target in TARGETS if not target.exact}
    found = {name: round(value, 4) for name, value in figures(results).items() if name in ratios}
    machine = results["machine"]
    origin = {name: machine[name] for name in ("processor", "cores", "revision", "date")}
    return {"machine": origin, "ratios": found}


def changes(now: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """How much each ratio got worse, as a factor minus 1. Negative values are improvements."""
    found = {}
    for target in TARGETS:
        new, old = now.get(target.name), before.get(target.name)
        if target.exact or new is None or not old:
            continue
        if target.lower:
            found[target.name] = new / old - 1
        else:
            found[target.name] = old / new - 1 if new else math.inf
    return found


def main(argv: list[str]) -> int:
    """Print a line for each ratio. Return 1 if one got worse, else 0."""
    results = json.loads(Path(argv[0] if argv else RESULTS).read_text())
    recorded = Path(argv[1] if len(argv) > 1 else BASELINE)
    if not recorded.exists():
        print(f"no baseline yet: record one with python -m benchmarks --record ({recorded})")
        return 0
    baseline = json.loads(recorded.read_text())
    now, before = figures(results), baseline["ratios"]
    worse = changes(now, before)
    print(f"against {baseline['machine']['revision']} of {baseline['machine']['date']}")
    for name, change in worse.items():
        verdict = "WORSE" if change > TOLERANCE else "better" if change < -TOLERANCE else "same"
        print(f"{name:48} {before[name]:8.3f} -> {now[name]:8.3f}  {verdict}")
    for name in sorted(before.keys() - worse.keys()):
        print(f"{name:48} {before[name]:8.3f} -> not measured")
    return int(any(change > TOLERANCE for change in worse.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
