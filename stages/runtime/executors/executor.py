"""What every executor does: seats, the start handshake, one end that everybody hears of, restarts.

A subclass says how a worker is launched, told an order, and ended by force. A worker is up when it
is loaded and linked with all neighbours that are there. Belongs to the event loop's thread; a
subclass brings reports over from wherever its worker runs.
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
RELINK_S = 5.0  # how long two workers that are up may be out of each other's reach


class Executor(ABC):
    """Runs one worker of `stage(*args)`. Seats are added before the first start.

    After the worker has ended, it can be started again.
    """

    kind: ClassVar[str]  # as in a Placement

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        self.name = name
        self.is_loaded = False  # and warm, and listens
        self.is_up = False
        self.links: list[Connection] = []
        self.num_reports = 0  # since the server began; a sign of life
        self.num_starts = 0
        self.num_live = 0  # requests that are bound to the worker; its seats count
        self.step_stats = StepStats()
        self._make_stage = partial(stage, *args)
        self._ports: list[Position] = []
        self._seats: list[Replica] = []
        self._clock_map = ClockMap()
        self._ready: asyncio.Future[None] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._stopping = False

    @abstractmethod
    async def _launch(self) -> None:
        """Start a worker; later call `_on_ready`, `_on_reports` and, last, `_on_end`."""

    @abstractmethod
    def post(self, order: Order) -> None:
        """Put an order into the worker's inbox. Never waits."""

    @abstractmethod
    def kill(self) -> None:
        """End the worker by force, as far as that is possible."""

    def join(self, face: ReplicatedHandle, port: Position) -> None:
        """Do the work of one more pipeline position."""
        inlets, outlets = ([edge.name for edge in each] for each in (port.inlets, port.outlets))
        seat = face.seat(self, len(self._seats), inlets, outlets, port.max_unread)
        self._seats.append(seat)
        self._ports.append(port)
        for each in self.links:
            if each.receiver is self and each.name in inlets:
                each.seat, each.number = self._seats[-1], inlets.index(each.name)
                each.turn(False)

    @property
    def num_positions(self) -> int:
        """How many it does the work of."""
        return len(self._ports)

    async def start(self, timeout_s: float) -> None:
        """Load and warm the stage; StartError names it if that fails or takes too long."""
        loop = asyncio.get_running_loop()
        self._ready, self._ended = loop.create_future(), loop.create_future()
        self._stopping = False
        self._clock_map = ClockMap()
        with anyio.CancelScope(
            shield=True
        ):  # short; cut in the middle, nobody would own the worker
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
        for seat in self._seats:
            seat.worker_started()

    def _stop_loading(self) -> None:
        """End a worker that loads: it would not listen before it is done."""
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
        """End the worker; returns when it has ended, by force if it does not listen."""
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
        """Where neighbours on other machines reach this one; None where there cannot be any."""
        return await self.links[0].find_ip() if self.links else None

    def _on_ready(self, ready: Ready) -> None:
        """The worker is loaded; now it and its neighbours are to find each other."""
        self.is_loaded = True
        for each in self.links:
            if each.receiver is self:
                each.address = ready.addresses[each.name]
                each.turn(ready.links[each.name])
            each.introduce()
        self.connections_changed()

    def connections_changed(self) -> None:
        """Up, once linked with every neighbour that is there."""
        linked = all(each.is_up for each in self.links if each.is_wanted)
        if self.is_loaded and linked and self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    def _on_linked(self, name: str, is_up: bool) -> None:
        changed = next(each for each in self.links if each.name == name and each.receiver is self)
        changed.turn(is_up)
        self.connections_changed()
        changed.sender.connections_changed()
        if not is_up and not self._stopping and not changed.sender.is_stopping:
            log.warning("link_down", edge=name)
            loop = asyncio.get_running_loop()
            starts = self.num_starts, changed.sender.num_starts
            loop.call_later(RELINK_S, self._judge, changed, starts)

    def _judge(self, link: Connection, starts: tuple[int, int]) -> None:
        """Two workers that both answer us do not reach each other: place the receiver again."""
        same = starts == (self.num_starts, link.sender.num_starts)
        if same and link.is_wanted and not link.is_up:
            log.error("stage_out_of_reach", edge=link.name)
            self.kill()

    @property
    def num_open(self) -> int:
        """How many requests were submitted to it and are not over."""
        return sum(len(seat.work) for seat in self._seats)

    @property
    def num_queued(self) -> int:
        """How many of these it has not begun."""
        return sum(not work.busy for seat in self._seats for work in seat.work.values())

    @property
    def owes_acknowledgement(self) -> bool:
        """Whether an abort was not acknowledged yet."""
        return any(seat.aborts for seat in self._seats)

    def _on_reports(self, reports: list[Report]) -> None:
        self.num_reports += len(reports)
        for report in reports:
            match report:
                case StepReport():
                    self._note(report)
                case ConnectionChanged(name, is_up):
                    self._on_linked(name, is_up)
                case _:
                    self._seats[report.face].deliver(report)

    def _note(self, told: StepReport) -> None:
        ahead_s = self._clock_map.ahead_s(told.sent_at, asyncio.get_running_loop().time())
        for step in told.steps:
            if step.counts:
                self.step_stats.note(step)
            began_at, ended_at = step.began_at + ahead_s, step.ended_at + ahead_s
            for (face, request_id), num in step.num_chunks.items():
                self._seats[face].worked(request_id, began_at, ended_at, num)

    def _on_end(self, reason: str | None) -> None:
        """The worker is gone; `reason` is None where it was told to stop."""
        if reason is not None and not self._stopping:
            log.error("worker_ended", stage=self.name, reason=reason)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(StartError(f"{self.name} could not start: {reason}"))
        self.is_loaded = self.is_up = False
        for each in self.links:
            each.turn(False)
        for seat in self._seats:
            seat.worker_ended(WorkerDiedError(f"{self.name} ended: {reason}"))
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
        for each in self.links:  # a neighbour may have waited for this one
            (each.receiver if each.sender is self else each.sender).connections_changed()
