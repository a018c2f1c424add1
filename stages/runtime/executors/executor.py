"""What every executor does: positions, the start handshake, one end that all replicas learn of.

A subclass knows how to launch a worker, to post an order to it, and to kill it. A worker is up when
it is loaded, and connected with all neighbours that are loaded. Belongs to the event loop's thread.
A subclass brings the reports there from wherever its worker runs.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import anyio
import structlog

from stages.contract.errors import StartError, WorkerDiedError
from stages.runtime.worker.control import ConnectionChanged, Stop
from stages.runtime.worker.step_stats import ClockMap, StepReport, StepStats

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.executors.connections import Connection
    from stages.runtime.executors.handle import Replica, ReplicatedHandle
    from stages.runtime.worker.control import Order, Ready, Report
    from stages.runtime.worker.edges import Position

log = structlog.get_logger(__name__)

STOP_S = 5.0
RECONNECT_S = 5.0  # how long two workers that are up may be disconnected


class Executor(ABC):
    """Runs one worker of `stage(*args)`. Positions are added before the first start.

    After the worker has ended, it can be started again. `_replicas` are this worker in the handle
    of each of its positions, in their order.
    """

    kind: ClassVar[str]  # as in a Placement

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        self.name = name
        self.is_loaded = False  # the stage is warm, and the worker takes orders
        self.is_up = False
        self.connections: list[Connection] = []
        self.num_reports = 0  # since the server began; a sign of life
        self.num_starts = 0
        self.num_live = 0  # requests that are bound to the worker; its replicas count them
        self.step_stats = StepStats()
        self._make_stage = partial(stage, *args)
        self._positions: list[Position] = []
        self._replicas: list[Replica] = []
        self._clock_map = ClockMap()
        self._ready: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._stopping = False

    @abstractmethod
    async def _launch(self) -> None:
        """Start a worker. Later call `_on_ready`, `_on_reports` and, last, `_on_end`."""

    @abstractmethod
    def post(self, order: Order) -> None:
        """Put an order into the worker's inbox. Never waits."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker by force, as far as that is possible."""

    def add_position(self, handle: ReplicatedHandle, position: Position) -> None:
        """Run the worker at one more pipeline position, for this handle."""
        incoming = [edge.name for edge in position.incoming]
        outgoing = [edge.name for edge in position.outgoing]
        index = len(self._positions)
        replica = handle.add_replica(self, index, incoming, outgoing, position.max_unread)
        self._replicas.append(replica)
        self._positions.append(position)
        for connection in self.connections:
            if connection.receiver is self and connection.name in incoming:
                connection.replica = replica
                connection.previous_replica = incoming.index(connection.name)
                connection.set_up(False)

    @property
    def num_positions(self) -> int:
        """At how many pipeline positions the worker runs."""
        return len(self._positions)

    async def start(self, timeout_s: float) -> None:
        """Load and warm the stage. StartError names it if that fails or takes too long."""
        loop = asyncio.get_running_loop()
        self._ready, self._ended = loop.create_future(), loop.create_future()
        self._stopping = False
        self._clock_map = ClockMap()
        # The launch is short. If it were cancelled half-way, nobody would own the worker.
        with anyio.CancelScope(shield=True):
            await self._launch()
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready
        except TimeoutError:
            self.kill()
            raise StartError(f"{self.name} was not ready after {timeout_s:g} s") from None
        if self._ended.done():  # in the turn in which it was ready, before this could go on
            raise StartError(f"{self.name} ended as soon as it was ready")
        self.is_up = True
        self.num_starts += 1
        for replica in self._replicas:
            replica.worker_started()

    def _stop_loading(self) -> None:
        """End a worker that is still loading: it takes no orders before it is done."""
        self.kill()

    @property
    def is_stopping(self) -> bool:
        """Whether the worker was told to stop, and should stay ended."""
        return self._stopping

    async def ended(self) -> None:
        """Returns when the worker that was started last has ended."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    async def stop(self) -> None:
        """End the worker. Returns when it has ended, by force if it does not react."""
        self._stopping = True
        if self._ended is None or self._ended.done():
            return
        self.post(Stop())
        if not self.is_up:
            self._stop_loading()
        try:
            async with asyncio.timeout(STOP_S):
                await self.ended()
        except TimeoutError:
            log.warning("worker_killed", stage=self.name)
            self.kill()

    async def _find_ip(self) -> str | None:
        """This worker's address for neighbours on other machines. None if there cannot be any."""
        return await self.connections[0].find_ip() if self.connections else None

    def _on_ready(self, ready: Ready) -> None:
        """The worker is loaded. Now its neighbours and it can connect."""
        self.is_loaded = True
        for connection in self.connections:
            if connection.receiver is self:
                connection.address = ready.addresses[connection.name]
                connection.set_up(ready.connected[connection.name])
            connection.send_address()
        self.connections_changed()

    def connections_changed(self) -> None:
        """The worker is ready once it is connected with every neighbour that is loaded."""
        connected = all(each.is_up for each in self.connections if each.can_be_up)
        if self.is_loaded and connected and self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _on_connection(self, name: str, is_up: bool) -> None:
        connection = next(
            each for each in self.connections if each.name == name and each.receiver is self
        )
        connection.set_up(is_up)
        self.connections_changed()
        connection.sender.connections_changed()
        if not is_up and not self._stopping and not connection.sender.is_stopping:
            log.warning("connection_down", edge=name)
            loop = asyncio.get_running_loop()
            starts = self.num_starts, connection.sender.num_starts
            loop.call_later(RECONNECT_S, self._kill_if_still_down, connection, starts)

    def _kill_if_still_down(self, connection: Connection, starts: tuple[int, int]) -> None:
        """Both workers answer the server, but cannot reach each other: start the receiver again."""
        same_workers = starts == (self.num_starts, connection.sender.num_starts)
        if same_workers and connection.can_be_up and not connection.is_up:
            log.error("worker_unreachable", edge=connection.name)
            self.kill()

    @property
    def num_open(self) -> int:
        """How many requests were submitted to it and are not over."""
        return sum(len(replica.work) for replica in self._replicas)

    @property
    def num_queued(self) -> int:
        """How many of these it has not begun."""
        return sum(not work.busy for replica in self._replicas for work in replica.work.values())

    @property
    def owes_acknowledgement(self) -> bool:
        """Whether it has not acknowledged an abort yet."""
        return any(replica.aborts for replica in self._replicas)

    def _on_reports(self, reports: list[Report]) -> None:
        self.num_reports += len(reports)
        for report in reports:
            match report:
                case StepReport():
                    self._add_steps(report)
                case ConnectionChanged(name, is_up):
                    self._on_connection(name, is_up)
                case _:
                    self._replicas[report.position].deliver(report)

    def _add_steps(self, report: StepReport) -> None:
        offset_s = self._clock_map.offset_s(report.sent_at, asyncio.get_running_loop().time())
        for step in report.steps:
            if step.counts:
                self.step_stats.add(step)
            began_at, ended_at = step.began_at + offset_s, step.ended_at + offset_s
            for (position, request_id), num in step.num_chunks.items():
                self._replicas[position].add_work(request_id, began_at, ended_at, num)

    def _on_end(self, reason: str | None) -> None:
        """The worker is gone. `reason` is None if it was told to stop."""
        if reason is not None and not self._stopping:
            log.error("worker_ended", stage=self.name, reason=reason)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(StartError(f"{self.name} could not start: {reason}"))
        self.is_loaded = self.is_up = False
        for connection in self.connections:
            connection.set_up(False)
        for replica in self._replicas:
            replica.worker_ended(WorkerDiedError(f"{self.name} ended: {reason}"))
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        for connection in self.connections:  # a neighbour may have waited for this worker
            is_sender = connection.sender is self
            (connection.receiver if is_sender else connection.sender).connections_changed()
