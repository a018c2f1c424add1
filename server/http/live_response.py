"""A response that runs its request while it is sent, and aborts it when the client leaves.

The response enters the request's scope, so everything the request holds is freed when the response
ends, however it ends. The client is watched from the start, under every version of ASGI: also while
the request waits for a place, and while its producer is blocked. The headers are sent with the
first bytes. An exception before them leaves the response and gets a status of its own. A client
that reads nothing for `stall_s` is disconnected.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import structlog
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from server.errors import BrokenStreamError, StalledReaderError, log_failure
from server.exception_groups import ungrouped
from server.observe.timeline import TIMELINE
from server.serving.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

    from orchestrator import OrchOutput, OutputStream
    from server.observe import Timeline
    from server.serving.served import OpenStream

log = structlog.get_logger(__name__)


class ClientSend:
    """The `send` of a live response: holds the response start back until the first body message.

    `started` is true once the start was sent. Raises ClientDisconnect if the web server says that
    the client has left. Calls `on_stall` if a message is being sent and the client has taken
    nothing for `stall_s`. One timer serves the whole response, because one for each message would
    cost as much as the message itself.
    """

    def __init__(self, send: Send, stall_s: float, on_stall: Callable[[], None]) -> None:
        self._send = send
        self._stall_s = stall_s
        self._on_stall = on_stall
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._num_sending = 0  # a ping and an event may be sent at the same time
        self._progress_at = 0.0
        self._lock = anyio.Lock()
        self._start: Message = {}
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._begin_sending()
        try:
            if not self.started:
                await self._send_start()
            await self._send(message)
        except OSError:  # the client has left (ASGI 2.4)
            raise ClientDisconnect from None
        finally:
            self._num_sending -= 1
            if self._num_sending:
                self._progress_at = self._loop.time()

    def close(self) -> None:
        """Stop the timer. Nothing is sent after this."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send_start(self) -> None:
        async with self._lock:
            if not self.started:
                await self._send(self._start)
                self.started = True
                self._progress_at = self._loop.time()

    def _begin_sending(self) -> None:
        if not self._num_sending:
            self._progress_at = self._loop.time()
        self._num_sending += 1
        if self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._timer = self._loop.call_at(self._progress_at + self._stall_s, self._check_progress)

    def _check_progress(self) -> None:
        self._timer = None
        if self._num_sending and self._loop.time() >= self._progress_at + self._stall_s:
            self._on_stall()
        elif self._num_sending:
            self._start_timer()


class LazyStream:
    """A request's outputs. The request starts when the first output is asked for.

    So its wait for a place is part of the response, and pings are sent meanwhile. `aclose` aborts a
    request that was started and has not ended.

    Asking for the next output means that the one before has been handled: in a streamed response it
    was written. Both are noted in the timeline.
    """

    def __init__(self, open_stream: OpenStream, timeline: Timeline, send: ClientSend) -> None:
        self._open_stream = open_stream
        self._timeline = timeline
        self._send = send
        self._scope = AsyncExitStack()
        self._source: OutputStream | None = None
        self._last: OrchOutput | None = None

    def __aiter__(self) -> LazyStream:
        return self

    async def __anext__(self) -> OrchOutput:
        if self._source is None:
            self._timeline.queued_at = anyio.current_time()
            self._source = await self._scope.enter_async_context(self._open_stream())
            self._timeline.note_admitted(self._source.records)
        elif self._last is not None and self._send.started:
            self._timeline.note_written(self._last)
        self._last = None
        self._last = await anext(self._source)
        self._timeline.note_output(self._last)
        return self._last

    async def aclose(self) -> None:
        """Leave the request's scope, if it was entered."""
        await self._scope.aclose()


class LiveResponse(Response):
    """Runs the request of `open_stream`; `reply` sends its outputs.

    `reply` gets the outputs, the ASGI scope and the `ClientSend`. What the request or `reply`
    raises is raised as it is before the first byte, and as BrokenStreamError after it. If the
    client leaves, the call returns without a complete response.
    """

    def __init__(
        self,
        open_stream: OpenStream,
        reply: Callable[[Outputs, Scope, ClientSend], Awaitable[None]],
        stall_s: float,
    ) -> None:
        super().__init__()
        self._stall_s = stall_s
        self._open_stream = open_stream
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        until_stall = anyio.CancelScope()
        client_send = ClientSend(send, self._stall_s, until_stall.cancel)
        try:
            stream = LazyStream(self._open_stream, scope[TIMELINE], client_send)
            async with cancel_on_disconnect(receive), aclosing(stream) as source:
                with until_stall:
                    await self._reply(Outputs(source), scope, client_send)
        except ClientDisconnect:
            return
        except Exception as error:
            if client_send.started:
                log_failure(error)
                raise BrokenStreamError from error
            raise
        finally:
            client_send.close()
        if until_stall.cancelled_caught:
            log.warning("reader_stalled", after_s=self._stall_s)
            raise BrokenStreamError from StalledReaderError()


@asynccontextmanager
async def cancel_on_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the body of the `async with` as soon as the client leaves; continue after it."""
    with ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_wait_for_disconnect, receive, tasks.cancel_scope)
            yield
            tasks.cancel_scope.cancel()


async def _wait_for_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def receive_nothing() -> Message:
    """An ASGI `receive` that never returns, for responses inside `cancel_on_disconnect`."""
    await anyio.sleep_forever()
    raise AssertionError("forever ended")
