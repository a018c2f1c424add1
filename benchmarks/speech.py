"""Measures speech of our server and its rivals: bursts, closed loops and Poisson arrivals.

All servers are started at once, and take turns batch by batch. All others are frozen meanwhile, so
each has the machine to itself and all run under the same conditions. Memory is measured in a second
pass with one server at a time: the proportional set size divides shared files between processes.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from benchmarks.load import Client, poisson, together
from benchmarks.measured import Batch, summarise
from benchmarks.processes import awake, freeze
from benchmarks.systems import PIPER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.effort import Effort
    from benchmarks.systems import Server, System

# system; load (burst, closed, open); concurrent requests, or the share of piper's throughput
Key = tuple[str, str, float]


class Speech:
    """Collects batches by system and load."""

    def __init__(self, systems: Sequence[System], effort: Effort) -> None:
        self._systems = systems
        self._effort = effort
        self._batches: dict[Key, list[Batch]] = defaultdict(list)

    def measure(self) -> list[dict[str, Any]]:
        """Run all rounds, then measure the memory. Returns a row for each system and load."""
        with ExitStack() as stack:
            servers = []
            for system in self._systems:
                print(f"starting {system.name}", flush=True)
                servers.append(stack.enter_context(system.serving()))
                freeze(servers[-1].pid)
            for number in range(self._effort.rounds):
                print(f"speech, round {number + 1}", flush=True)
                self._round(servers[number:] + servers[:number])
            for share in self._effort.open_shares:
                self._turns(servers, "open", share, lambda system: self._arrivals(system, share))  # noqa: B023 - called at once
        peak_mb = self._measure_memory()
        return [
            {"system": key[0], "load": key[1], "at": key[2]}
            | summarise(batches)
            | {"peak_mb": peak_mb.get(key), "admission": self._admission(key[0])}
            for key, batches in self._batches.items()
        ]

    def _round(self, servers: list[Server]) -> None:
        first = 0
        for num, times in self._effort.bursts.items():
            for _ in range(times):
                self._turns(servers, "burst", num, _burst(num, num, first))
                first += num
        for num, each in self._effort.closed.items():
            self._turns(servers, "closed", num, _burst(num, num * each, first))

    def _turns(
        self,
        servers: list[Server],
        load: str,
        at: float,
        clients: Callable[[System], list[Client]],
    ) -> None:
        for server in servers:
            with awake(server.pid):
                batch = server.ask(clients(server.system))
            self._batches[server.system.name, load, at].append(batch)
            print_batch(f"{server.system.name:30} {load:6} {at:<4g}", batch)

    def _arrivals(self, system: System, share: float) -> list[Client]:
        """Poisson arrivals at a share of the throughput of piper's server, for any system."""
        row = summarise(self._batches[PIPER, "burst", min(self._effort.max_running, 8)])
        rate_per_s = share * row["audio_s_per_s"] / row["audio_s_each"]
        count = max(1, round(rate_per_s * self._effort.open_s))
        return poisson(system.bodies(count), rate_per_s, seed=1)

    def _measure_memory(self) -> dict[Key, float | None]:
        """Peak memory of each system alone, in larger and larger bursts."""
        found: dict[Key, float | None] = {}
        for system in self._systems:
            with system.serving() as server:
                for num in self._effort.bursts:
                    batch = server.ask(_burst(num, num, 0)(system), with_memory=True)
                    found[system.name, "burst", num] = batch.peak_mb
                    print(f"{system.name:30} memory {num:<4} {batch.peak_mb:6.0f} MB", flush=True)
        return found

    def _admission(self, name: str) -> dict[str, int] | None:
        (system,) = (system for system in self._systems if system.name == name)
        if not system.is_ours:
            return None
        return {
            "max_running": int(system.settings["NANO_OMNI_MAX_RUNNING"]),
            "max_waiting": int(system.settings["NANO_OMNI_MAX_WAITING"]),
        }


def _burst(num_clients: int, count: int, first: int) -> Callable[[System], list[Client]]:
    return lambda system: together(system.bodies(count, first), num_clients)


def print_batch(label: str, batch: Batch) -> None:
    """Print a line about a batch."""
    row = summarise([batch])
    first = row["first_audio_s"]
    median_ms = 1000 * first["median"] if first else float("nan")
    print(
        f"{label} first audio {median_ms:6.0f} ms {row['audio_s_per_s'] or 0:5.1f} audio s/s"
        f"  dry {row['ran_dry']:4.0%} {row['ran_dry_buffered']:4.0%}  {row['statuses']}",
        flush=True,
    )
