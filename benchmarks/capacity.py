"""Measures how many listeners a server can feed without a gap, and what it does with more.

A listener plays its texts one after the other without a pause, so N listeners are a load of N audio
seconds per second. The number is found by bisection, between shares of the server's own throughput.
The throughput of piper's server is measured again before each try, as the reference.
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

LOWEST, HIGHEST, STEP = 0.8, 1.25, 0.075  # shares of the throughput
OVERLOAD = 2.0  # share of the throughput
NUM_REFERENCE_REQUESTS = 8  # concurrent


def highest_good(candidates: list[int], good: Callable[[int], bool], probes: int) -> int:
    """The highest candidate that is good, found by bisection; 0 if none was.

    `candidates` are in ascending order, the good ones first. At most `probes` of them are tried.
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
    """Measures the listeners of one system. `reference` is piper's server, running but frozen."""

    def __init__(self, system: System, reference: Server, effort: Effort) -> None:
        self._system, self._reference, self._effort = system, reference, effort
        self._tried: list[dict[str, Any]] = []
        self._reference_rates: list[float] = []

    def measure(self, throughput: float, audio_s: float) -> dict[str, Any]:
        """The highest number of listeners without a gap, all tries, and the row under overload."""
        steps = round((HIGHEST - LOWEST) / STEP) + 1
        candidates = sorted({round(throughput * (LOWEST + STEP * k)) for k in range(steps)} - {0})
        limits = {"NANO_OMNI_MAX_RUNNING": str(2 * candidates[-1])}
        system = self._system
        if system.is_ours:
            system = replace(system, settings={**system.settings, **limits})
        with system.serving() as server:
            found = highest_good(
                candidates, lambda num: self._try(server, num, audio_s), self._effort.probes
            )
        return {
            "system": system.name,
            "listeners": found,
            "listeners_without_buffer": self._highest_without_buffer(),
            "reference_audio_s_per_s": median(self._reference_rates),
            "admission": limits if system.is_ours else None,
            "tried": self._tried,
            "beyond": self._overload(throughput, audio_s) if system.is_ours else None,
        }

    def _try(self, server: Server, num: int, audio_s: float) -> bool:
        """Whether the server feeds `num` listeners without a gap."""
        freeze(server.pid)
        with awake(self._reference.pid):
            bodies = self._reference.system.bodies(NUM_REFERENCE_REQUESTS)
            batch = self._reference.ask(together(bodies, NUM_REFERENCE_REQUESTS))
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

    def _highest_without_buffer(self) -> int:
        rows = self._tried
        held = [row["listeners"] for row in rows if row["good"] == 1.0 and not row["ran_dry"]]
        return max(held, default=0)

    def _overload(self, throughput: float, audio_s: float) -> dict[str, Any]:
        """Poisson arrivals at twice the throughput, with the default admission limits."""
        rate_per_s = OVERLOAD * throughput / audio_s
        defaults = {
            name: value
            for name, value in self._system.settings.items()
            if not name.startswith("NANO_OMNI_MAX")
        }
        with replace(self._system, settings=defaults).serving() as server:
            bodies = server.system.bodies(round(rate_per_s * self._effort.beyond_s))
            row = summarise([server.ask(poisson(bodies, rate_per_s, seed=2))])
        return {"rate_per_s": rate_per_s, "admission": "as shipped", **row}
