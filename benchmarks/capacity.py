"""How many listeners a server holds without a gap, and what it does when more come.

Listeners never stop: each plays its texts one after the other, so that N of them are a load of N
audio seconds per second. Found by bisection over numbers of listeners, taken as shares of the
server's own throughput. piper's throughput is measured again beside it: the two take turns.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.effort import GOOD_SHARE
from benchmarks.load import listeners, poisson, together
from benchmarks.measured import summarise
from benchmarks.processes import awake, freeze

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.effort import Effort
    from benchmarks.systems import Server, System

LOWEST, HIGHEST, STEP = 0.8, 1.25, 0.075  # of the throughput
BEYOND = 2.0
REFERENCE = 8  # requests at once


def highest_good(candidates: list[int], good: Callable[[int], bool], probes: int) -> int:
    """The highest candidate that is good, if good ones come first; 0 where none was.

    `candidates` rise. Looks at no more than `probes` of them.
    """
    found, low, high = 0, 0, len(candidates)
    for _ in range(probes):
        if low >= high:
            break
        middle = (low + high) // 2
        if good(candidates[middle]):
            found, low = candidates[middle], middle + 1
        else:
            high = middle
    return found


class Capacity:
    """Counts the listeners of one system beside `reference`, which is up and frozen."""

    def __init__(self, system: System, reference: Server, effort: Effort) -> None:
        self._system, self._reference, self._effort = system, reference, effort
        self._tried: list[dict[str, Any]] = []
        self._reference_rates: list[float] = []

    def measure(self, throughput: float, audio_s: float) -> dict[str, Any]:
        """The highest number without a gap, all that was tried, and what is beyond it."""
        steps = round((HIGHEST - LOWEST) / STEP) + 1
        candidates = sorted({round(throughput * (LOWEST + STEP * k)) for k in range(steps)} - {0})
        room = {"NANO_OMNI_MAX_RUNNING": str(2 * candidates[-1])}
        system = self._system
        if system.is_ours:
            system = replace(system, settings={**system.settings, **room})
        with system.serving() as server:
            found = highest_good(
                candidates, lambda num: self._holds(server, num, audio_s), self._effort.probes
            )
        return {
            "system": system.name,
            "listeners": found,
            "listeners_without_buffer": self._strict(),
            "reference_audio_s_per_s": median(self._reference_rates),
            "admission": room if system.is_ours else None,
            "tried": self._tried,
            "beyond": self._beyond(throughput, audio_s) if system.is_ours else None,
        }

    def _holds(self, server: Server, num: int, audio_s: float) -> bool:
        freeze(server.pid)
        with awake(self._reference.pid):
            crowd = together(self._reference.system.bodies(REFERENCE), REFERENCE)
            batch = self._reference.ask(crowd)
        self._reference_rates.append(batch.audio_s / batch.wall_s)
        with awake(server.pid):
            bodies = server.system.bodies(num * self._effort.texts_per_listener)
            row = summarise([server.ask(listeners(bodies, num, audio_s))])
        self._tried.append({"listeners": num, **row})
        held = row["good"] >= GOOD_SHARE and not row["ran_dry_buffered"] and not row["failed"]
        print(
            f"{server.system.name}: {num} listeners {'held' if held else 'not held'}; piper makes"
            f" {self._reference_rates[-1]:.1f} audio s/s",
            flush=True,
        )
        return held

    def _strict(self) -> int:
        rows = self._tried
        held = [row["listeners"] for row in rows if row["good"] == 1.0 and not row["ran_dry"]]
        return max(held, default=0)

    def _beyond(self, throughput: float, audio_s: float) -> dict[str, Any]:
        """Poisson arrivals at twice the throughput, under the admission limits as shipped."""
        rate_per_s = BEYOND * throughput / audio_s
        shipped = {
            name: value
            for name, value in self._system.settings.items()
            if not name.startswith("NANO_OMNI_MAX")
        }
        with replace(self._system, settings=shipped).serving() as server:
            bodies = server.system.bodies(round(rate_per_s * self._effort.beyond_s))
            row = summarise([server.ask(poisson(bodies, rate_per_s, seed=2))])
        return {"rate_per_s": rate_per_s, "admission": "as shipped", **row}
