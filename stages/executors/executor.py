"""What every executor does: seats, the start handshake, one end that everybody hears of, restarts.

A subclass says how a worker is launched, told an order, and ended by force. Belongs to the event
loop's thread; a subclass brings reports over from wherever its worker runs.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import anyio
import structlog

from stages.errors import StartError, WorkerDiedError
from stages.executors.control import Stop
from stages.executors.figures import ClockMap, Figures, Told
from stages.worker import Wiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.connectors.contract import Edge
    from stages.executors.control import Order, Report
    from stages.executors.face import Face, Seat
    from stages.stage import Stage

log = structlog.get_logger(__name__)

STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Port:
    """One pipeline position of a worker, as it is told to the place where the worker runs.

    `inlets` are its edges from each replica of the stage before, `outlets` to each of the next.
    """

    final: bool
    inlets: tuple[Edge, ...]
    outlets: tuple[Edge, ...]
    max_unread: int

    def open(self) -> Wiring:
        """The position's ends of its edges; called where the worker runs."""
        return Wiring(
            self.final,
            [edge.open_receiver() for edge in self.inlets],
            [edge.open_sender() for edge in self.outlets],
            self.max_unread,
        )


class Executor(ABC):
    """Runs one worker of `stage(*args)`. Seats are added before the first start.

    After the worker has ended, it can be started again.
    """

    kind: ClassVar[str]  # as in a Placement

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        self.name = name
        self.is_up = False  # loaded, warm and running
        self.num_reports = 0  # since the server began; a sign of life
        self.num_starts = 0
        self._make_stage = partial(stage, *args)
        self._ports: list[Port] = []
        self._seats: list[Seat] = []
        self._past_figures = Figures()  # of the workers before this one
        self._figures = Figures()
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

    def join(self, face: Face, port: Port) -> None:
        """Do the work of one more pipeline position."""
        self._seats.append(face.seat(self, len(self._seats)))
        self._ports.append(port)

    async def start(self, timeout_s: float) -> None:
        """Load and warm the stage; StartError names it if that fails or takes too long."""
        loop = asyncio.get_running_loop()
        self._ready, self._ended = loop.create_future(), loop.create_future()
        self._stopping = False
        self._past_figures, self._figures = self.figures, Figures()
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

    def _on_ready(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_result(None)

    @property
    def figures(self) -> Figures:
        """All steps since the server began, as far as they were told."""
        return self._past_figures + self._figures

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

    @property
    def num_live(self) -> int:
        """How many requests are bound to the worker."""
        return sum(len(seat.requests) for seat in self._seats)

    def _on_reports(self, reports: list[Report]) -> None:
        self.num_reports += len(reports)
        for report in reports:
            if isinstance(report, Told):
                self._note(report)
            else:
                self._seats[report.face].deliver(report)

    def _note(self, told: Told) -> None:
        self._figures = told.figures
        ahead_s = self._clock_map.ahead_s(told.sent_at, asyncio.get_running_loop().time())
        for (face, request_id), steps in told.steps.items():
            self._seats[face].worked(request_id, steps, ahead_s)

    def _on_end(self, reason: str | None) -> None:
        """The worker is gone; `reason` is None where it was told to stop."""
        if reason is not None and not self._stopping:
            log.error("worker_ended", stage=self.name, reason=reason)
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(StartError(f"{self.name} could not start: {reason}"))
        self.is_up = False
        for seat in self._seats:
            seat.worker_ended(WorkerDiedError(f"{self.name} ended: {reason}"))
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)
