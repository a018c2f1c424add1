"""Restarts workers that died, with exponential backoff, for as long as the server runs.

A worker that neither acknowledges an abort nor reports anything for a while is killed, and then
restarted like any other. Requests are not its business: the orchestrator fails those.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
import structlog

from stages.contract.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

log = structlog.get_logger(__name__)


class Supervised(Protocol):
    """What a supervisor needs of a worker (see `stages/runtime/executors/executor.py`)."""

    name: str
    num_reports: int

    @property
    def is_stopping(self) -> bool:
        """Whether it should stay ended."""

    @property
    def owes_acknowledgement(self) -> bool:
        """Whether an abort was not acknowledged yet."""

    async def start(self, timeout_s: float) -> None:
        """Start it; StartError if it does not come up."""

    async def ended(self) -> None:
        """Returns when it has ended."""

    def kill(self) -> None:
        """End it by force."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a supervisor waits, in seconds.

    Before a restart it waits `first_pause_s`, then twice as long each time, at most `max_pause_s`.
    A worker that ran for `calm_s` starts with the first pause again. `start_s` limits one start,
    `silence_s` how long a worker that owes an acknowledgement may report nothing.
    """

    first_pause_s: float = 0.5
    max_pause_s: float = 30.0
    calm_s: float = 60.0
    start_s: float = 300.0
    silence_s: float = 5.0


class Supervisor:
    """Keeps `workers` up while `run` runs."""

    def __init__(self, workers: Sequence[Supervised], patience: Patience | None = None) -> None:
        self._workers = {worker.name: worker for worker in workers}
        self._patience = patience or Patience()
        self._suspected: set[str] = set()

    async def run(self) -> None:
        """Keep the workers up until cancelled, or until every worker was told to stop."""
        async with anyio.create_task_group() as tasks:
            for worker in self._workers.values():
                tasks.start_soon(self._keep_up, worker)

    def suspect(self, names: Iterable[str]) -> None:
        """Kill each of these workers that reports nothing for `silence_s`: aborts are overdue."""
        loop = asyncio.get_running_loop()
        for name in set(names) - self._suspected:
            self._suspected.add(name)
            worker = self._workers[name]
            loop.call_later(self._patience.silence_s, self._judge, worker, worker.num_reports)

    def _judge(self, worker: Supervised, num_reports: int) -> None:
        self._suspected.discard(worker.name)
        if worker.owes_acknowledgement and worker.num_reports == num_reports:
            log.error("worker_silent", stage=worker.name)
            worker.kill()

    async def _keep_up(self, worker: Supervised) -> None:
        loop = asyncio.get_running_loop()
        patience = self._patience
        pause_s, up_since = patience.first_pause_s, loop.time()
        while True:
            await worker.ended()
            if worker.is_stopping:
                return
            if loop.time() - up_since > patience.calm_s:
                pause_s = patience.first_pause_s
            log.warning("worker_restarts", stage=worker.name, in_s=pause_s)
            await anyio.sleep(pause_s)
            pause_s = min(2 * pause_s, patience.max_pause_s)
            try:
                await worker.start(patience.start_s)
            except StartError as error:
                log.error("worker_not_started", stage=worker.name, error=str(error))
            up_since = loop.time()
