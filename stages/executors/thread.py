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

from stages.executors.executor import Executor
from stages.executors.launch import bring_up, reason_of
from stages.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.executors.control import Order
    from stages.stage import Stage

log = structlog.get_logger(__name__)


class ThreadMailbox:
    """See Mailbox. Orders are posted, and edges ring, from any thread."""

    def __init__(self) -> None:
        self._orders: deque[Order] = deque()
        self._bell = threading.Event()

    def post(self, order: Order) -> None:
        """Append an order and wake the worker."""
        self._orders.append(order)
        self.ring()

    def ring(self) -> None:
        """Wake the worker: an edge has something for it."""
        if not self._bell.is_set():  # then it has not looked yet, and will
            self._bell.set()

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox."""
        if block:
            self._bell.wait()
        self._bell.clear()
        orders = []
        while self._orders:
            orders.append(self._orders.popleft())
        return orders


class ThreadExecutor(Executor):
    """See Executor."""

    kind = "thread"

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        super().__init__(name, stage, *args)
        self._mailbox = ThreadMailbox()
        self._thread: threading.Thread | None = None
        self._worker: Worker | None = None

    def ring(self) -> None:
        """Wake this worker; what an edge calls."""
        self._mailbox.ring()

    def kill(self) -> None:
        """See Executor. The thread is given up: its seats hear of the end now."""
        if self._worker is not None:
            self._worker.abandon()
        self._thread = self._worker = None
        self._on_end("given up")

    def _stop_loading(self) -> None:
        """It stops when it has loaded: the process must not exit under a thread that computes."""

    def post(self, order: Order) -> None:
        self._mailbox.post(order)

    async def _launch(self) -> None:
        self._mailbox = ThreadMailbox()
        loop = asyncio.get_running_loop()
        self._thread = threading.Thread(
            target=self._run, args=(loop, self._mailbox), name=f"stage-{self.name}", daemon=True
        )
        self._thread.start()

    def _run(self, loop: asyncio.AbstractEventLoop, mailbox: ThreadMailbox) -> None:
        """The thread: everything that goes wrong in it is told to the loop."""
        tell = partial(self._tell, loop, threading.current_thread())
        reason: str | None = None
        try:
            stage = bring_up(self._make_stage)
            tell(self._on_ready)
            wirings = [port.open() for port in self._ports]
            report = partial(tell, self._on_reports)
            self._worker = worker = Worker(stage, wirings, mailbox, report)
            worker.run()
        except Exception as error:  # the outermost frame of a worker
            log.debug("worker_raised", stage=self.name, exc_info=error)
            reason = reason_of(error)
        tell(self._on_end, reason)

    def _tell(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: threading.Thread,
        say: Callable[..., None],
        *what: object,
    ) -> None:
        """Run `say` on the loop, unless this thread was given up or the loop is gone."""

        def on_loop() -> None:
            if self._thread is thread:
                say(*what)

        if not loop.is_closed():
            loop.call_soon_threadsafe(on_loop)
