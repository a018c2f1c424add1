"""The thread executor: a stage worker in a thread of this process.

A thread cannot be ended by force. One that is given up goes on until its step returns, and what it
reports after that is dropped.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

import structlog

from stages.runtime.connectors.memory import MemoryConnector
from stages.runtime.connectors.wakeup import ThreadWakeup
from stages.runtime.executors.executor import Executor
from stages.runtime.executors.startup import load_stage, reason_of
from stages.runtime.worker.control import Stop
from stages.runtime.worker.edges import WorkerEdges, wakeup_across_processes
from stages.runtime.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.connectors.wakeup import Wakeup
    from stages.runtime.worker.control import Order, Report

log = structlog.get_logger(__name__)


class ThreadMailbox:
    """A Mailbox to which any thread may post."""

    def __init__(self, wakeup: Wakeup) -> None:
        self._orders: deque[Order] = deque()
        self._wakeup = wakeup

    def post(self, order: Order) -> None:
        """Append an order and wake the worker."""
        self._orders.append(order)
        self._wakeup.wake()

    def take(self, *, block: bool) -> list[Order]:
        """All orders that have come. `block` waits for an order, or for news on an edge."""
        self._wakeup.wait(block=block)
        orders = []
        while self._orders:
            orders.append(self._orders.popleft())
        return orders


class ThreadExecutor(Executor):
    """Runs a worker in a thread."""

    kind = "thread"

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        super().__init__(name, stage, *args)
        self._mailbox: ThreadMailbox | None = None
        self._current: object = None  # identifies the thread that was started last; None: given up
        self._worker: Worker | None = None

    def kill(self) -> None:
        """Give the thread up. For everyone else its worker has ended now."""
        if self._worker is not None:
            self._worker.abandon()
        self.post(Stop())  # it may be waiting
        self._current = self._worker = self._mailbox = None
        self._on_end("given up")

    def _stop_loading(self) -> None:
        """It stops once it has loaded: the process must not exit under a thread that computes."""

    def post(self, order: Order) -> None:
        if self._mailbox is not None:
            self._mailbox.post(order)

    async def _launch(self) -> None:
        current = self._current = object()
        call_on_loop = partial(self._call_on_loop, asyncio.get_running_loop(), current)
        report = partial(call_on_loop, self._on_reports)
        wakeup = self._make_wakeup(await self._find_ip(), report)
        self._mailbox = ThreadMailbox(wakeup)
        thread = threading.Thread(
            target=self._run,
            args=(current, wakeup, self._mailbox, call_on_loop),
            name=f"stage-{self.name}",
            daemon=True,
        )
        thread.start()

    def _make_wakeup(self, ip: str | None, report: Callable[[list[Report]], None]) -> Wakeup:
        edges = [edge for each in self._positions for edge in (*each.incoming, *each.outgoing)]
        are_inside = all(isinstance(edge, MemoryConnector) for edge in edges)
        return ThreadWakeup() if are_inside else wakeup_across_processes(ip, report)

    def _run(
        self,
        current: object,
        wakeup: Wakeup,
        mailbox: ThreadMailbox,
        call_on_loop: Callable[..., None],
    ) -> None:
        """The thread. The loop learns of everything that goes wrong in it."""
        reason: str | None = None
        edges = WorkerEdges(wakeup)
        try:
            stage = load_stage(self._make_stage)
            if self._current is current:
                edges.open(self._positions)
                report = partial(call_on_loop, self._on_reports)
                self._worker = worker = Worker(stage, self._positions, edges, mailbox, report)
                call_on_loop(self._on_ready, edges.ready)
                worker.run()
        except Exception as error:  # the outermost frame of a worker
            log.debug("worker_raised", stage=self.name, exc_info=error)
            reason = reason_of(error)
        edges.close_others(())
        wakeup.close()
        call_on_loop(self._on_end, reason)

    def _call_on_loop(
        self,
        loop: asyncio.AbstractEventLoop,
        current: object,
        callback: Callable[..., None],
        *args: object,
    ) -> None:
        """Call on the loop, unless this thread was given up by then or the loop is closed."""

        def on_loop() -> None:
            if self._current is current:
                callback(*args)

        if not loop.is_closed():
            loop.call_soon_threadsafe(on_loop)
