"""The process executor: a stage worker in a process of its own. Linux only.

Processes come from a fork server that has torch loaded already, so that one more costs little time
and memory. Orders and reports travel over a socket pair; its end is how each side learns of the
other's death, also by SIGKILL.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import socket
import struct
import sys
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from stages.contract.errors import StartError
from stages.runtime.connectors.serialization import decode
from stages.runtime.executors.executor import Executor
from stages.runtime.executors.process_main import WorkerFailed, frame, run_worker
from stages.runtime.executors.startup import StageClass
from stages.runtime.worker.control import Ready

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.stage import Stage
    from stages.runtime.worker.control import Order

_U32 = struct.Struct("<I")
_PRELOAD = {"stages.runtime.executors.process_main", "stages.runtime.connectors.shared_memory"}


class _Wire(asyncio.Protocol):
    """The server's end of the socket pair: whole messages in, and the end of the worker."""

    def __init__(self, on_message: Callable[[Any], None], on_end: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_end = on_end
        self._buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        at = 0
        while len(self._buffer) - at >= _U32.size:
            size = _U32.unpack_from(self._buffer, at)[0]
            if len(self._buffer) - at - _U32.size < size:
                break
            at += _U32.size
            self._on_message(decode(self._buffer[at : at + size]))
            at += size
        del self._buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


class ProcessExecutor(Executor):
    """See Executor; the stage's class and arguments must be picklable. One torch thread each."""

    kind = "process"

    def __init__(self, name: str, stage: Callable[..., Stage], *args: object) -> None:
        super().__init__(name, stage, *args)
        if sys.platform != "linux":
            raise StartError("stages in processes of their own need Linux; use threads")
        _PRELOAD.add(stage.module if isinstance(stage, StageClass) else stage.__module__)
        self._process: Any = None
        self._transport: asyncio.Transport | None = None
        self._signs_of_end = 0
        self._failure: str | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process."""
        return self._process.pid if self._process is not None else None

    def kill(self) -> None:
        """See Executor."""
        if self._process is not None:
            self._process.kill()

    def post(self, order: Order) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame(order))

    async def _launch(self) -> None:
        ip = await self._find_ip()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(sorted(_PRELOAD))
        ours, theirs = socket.socketpair()
        self._failure, self._signs_of_end = None, 0
        process = context.Process(
            target=run_worker,
            args=(theirs, self._make_stage, tuple(self._ports), ip),
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
            lambda: _Wire(self._on_message, self._on_lost), sock=ours
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
        """The socket's other end is closed, and all that was sent is read."""
        self._transport = None
        self._process.kill()  # in case it still exists: nothing can be told it any more
        self._note_end()

    def _on_exit(self, loop: asyncio.AbstractEventLoop, sentinel: int) -> None:
        """The process is gone."""
        loop.remove_reader(sentinel)
        self._note_end()

    def _note_end(self) -> None:
        self._signs_of_end += 1
        if self._signs_of_end < 2:
            return
        code = self._process.exitcode
        self._process.close()
        self._process = None
        reason = self._failure or f"its process ended with {code}"
        self._on_end(None if self._stopping else reason)
