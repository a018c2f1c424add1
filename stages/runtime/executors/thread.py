"""The thread executor: a stage worker in a thread of this process.

A thread cannot be ended by force: one that is given up goes on until its step returns, and what it
reports then is dropped.
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
from stages.runtime.executors.startup import bring_up, reason_of
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
    """See Mailbox. Orders are posted from any thread."""

    def __init__(self, site: Wakeup) -> None:
        self._orders: deque[Order] = deque()
        self._site = site

    def post(self, order: Order) -> None:
        """Append an order and wake the worker."""
        self._orders.append(order)
        self._site.ring()

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox."""
        self._site.wait(block=block)
        orders = []
        while self._orders:
            orders.append(self._orders.popleft())
        return orders


class ThreadExecutor(Executor):
    """See Executor."""

    kind = "thread"

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        super().__init__(name, stage, *args)
        self._mailbox: ThreadMailbox | None = None
        self._attempt: object = None  # the one time that a thread was started that still counts
        self._worker: Worker | None = None

    def kill(self) -> None:
        """See Executor. The thread is given up: its seats hear of the end now."""
        if self._worker is not None:
            self._worker.abandon()
        self.post(Stop())  # it may wait
        self._attempt = self._worker = self._mailbox = None
        self._on_end("given up")

    def _stop_loading(self) -> None:
        """It stops when it has loaded: the process must not exit under a thread that computes."""

    def post(self, order: Order) -> None:
        if self._mailbox is not None:
            self._mailbox.post(order)

    async def _launch(self) -> None:
        attempt = self._attempt = object()
        tell = partial(self._tell, asyncio.get_running_loop(), attempt)
        site = self._site(await self._find_ip(), partial(tell, self._on_reports))
        self._mailbox = ThreadMailbox(site)
        thread = threading.Thread(
            target=self._run,
            args=(attempt, site, self._mailbox, tell),
            name=f"stage-{self.name}",
            daemon=True,
        )
        thread.start()

    def _site(self, ip: str | None, report: Callable[[list[Report]], None]) -> Wakeup:
        edges = [edge for port in self._ports for edge in (*port.inlets, *port.outlets)]
        inside = all(isinstance(edge, MemoryConnector) for edge in edges)
        return ThreadWakeup() if inside else wakeup_across_processes(ip, report)

    def _run(
        self, attempt: object, site: Wakeup, mailbox: ThreadMailbox, tell: Callable[..., None]
    ) -> None:
        """The thread: everything that goes wrong in it is told to the loop."""
        reason: str | None = None
        ends = WorkerEdges(site)
        try:
            stage = bring_up(self._make_stage)
            if self._attempt is attempt:
                ends.open(self._ports)
                report = partial(tell, self._on_reports)
                self._worker = worker = Worker(stage, self._ports, ends, mailbox, report)
                tell(self._on_ready, ends.ready)
                worker.run()
        except Exception as error:  # the outermost frame of a worker
            log.debug("worker_raised", stage=self.name, exc_info=error)
            reason = reason_of(error)
        ends.keep(())
        site.close()
        tell(self._on_end, reason)

    def _tell(
        self,
        loop: asyncio.AbstractEventLoop,
        attempt: object,
        say: Callable[..., None],
        *what: object,
    ) -> None:
        """Run `say` on the loop, unless this thread was given up or the loop is gone."""

        def on_loop() -> None:
            if self._attempt is attempt:
                say(*what)

        if not loop.is_closed():
            loop.call_soon_threadsafe(on_loop)
