"""The process executor: a stage worker in a process of its own. Linux only.

Processes come from a fork server that has loaded torch already, so that one more costs little time
and memory. Orders and reports travel over a socket pair. When one process dies, also by SIGKILL,
the other sees the end of the socket.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import sys
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from stages.contract.errors import StartError
from stages.runtime.connectors.frames import make_frame, take_frames
from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.executors.executor import Executor
from stages.runtime.executors.process_main import WorkerFailed, run_worker
from stages.runtime.executors.startup import StageClass
from stages.runtime.worker.control import Ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.worker.control import Order

_PRELOAD = {"stages.runtime.executors.process_main", "stages.runtime.connectors.shared_memory"}


class _ControlProtocol(asyncio.Protocol):
    """The server's end of the socket pair: the worker's messages, and its end."""

    def __init__(self, on_message: Callable[[Any], None], on_end: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._received = bytearray()

    def data_received(self, data: bytes) -> None:
        self._received += data
        for record in take_frames(self._received):
            self._on_message(decode(record))

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class ProcessExecutor(Executor):
    """Runs a worker in a process. The stage's class and arguments must be picklable."""

    kind = "process"

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        super().__init__(name, stage, *args)
        if sys.platform != "linux":
            raise StartError("stages in processes of their own need Linux; use threads")
        _PRELOAD.add(stage.module if isinstance(stage, StageClass) else stage.__module__)
        self._process: Any = None
        self._transport: asyncio.Transport | None = None
        self._num_end_signs = 0
        self._failure: str | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process. None where there is none."""
        return self._process.pid if self._process is not None else None

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        if self._process is not None:
            self._process.kill()

    def post(self, order: Order) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(make_frame(encode(order)))

    async def _launch(self) -> None:
        ip = await self._find_ip()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(sorted(_PRELOAD))
        ours, theirs = socket.socketpair()
        self._failure, self._num_end_signs = None, 0
        process = context.Process(
            target=run_worker,
            args=(theirs, self._make_stage, tuple(self._positions), ip),
            name=f"nano-omni-{self.name}",
            daemon=True,
        )
        with theirs:
            await anyio.to_thread.run_sync(process.start)
        self._process = process
        loop = asyncio.get_running_loop()
        loop.add_reader(process.sentinel, self._on_exit, loop, process.sentinel)
        ours.setblocking(False)
        self._transport, _ = await loop.create_connection(
            lambda: _ControlProtocol(self._on_message, self._on_lost), sock=ours
        )

    def _on_message(self, message: Any) -> None:
        match message:
            case Ready():
                self._on_ready(message)
            case WorkerFailed(reason):
                self._failure = reason
            case reports:
                self._on_reports(reports)

    def _on_lost(self) -> None:
        """The worker's end of the socket is closed, and everything that it sent is read."""
        self._transport = None
        self._process.kill()  # if it still exists, it can no longer be given orders
        self._add_end_sign()

    def _on_exit(self, loop: asyncio.AbstractEventLoop, sentinel: int) -> None:
        """The process is gone."""
        loop.remove_reader(sentinel)
        self._add_end_sign()

    def _add_end_sign(self) -> None:
        """The worker has ended once its socket is closed and its process is gone."""
        self._num_end_signs += 1
        if self._num_end_signs < 2:
            return
        code = self._process.exitcode
        self._process.close()
        self._process = None
        reason = self._failure or f"its process ended with {code}"
        self._on_end(None if self._stopping else reason)
