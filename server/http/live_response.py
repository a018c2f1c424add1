"""A response that runs its request while it is sent, and stops it when the client leaves.

The request's scope is inside the response, so everything it holds is free when the response ends,
however it ends. The client is watched from the first moment, also while the request waits for its
turn or the producer is blocked, under every version of ASGI. Headers wait for the first bytes:
what fails before them is an exception out of the response, and gets a status of its own. A reader
who takes nothing for too long is cut off.
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
    """Sends the response's start together with its first body message. `started`: it is out.

    Raises ClientDisconnect where the server says that nobody is there any more. Calls `give_up`
    where somebody sends and nothing has been taken for `stall_s`: by one timer for the whole
    response, as one for each message costs as much as the message.
    """

    def __init__(self, send: Send, stall_s: float, give_up: Callable[[], None]) -> None:
        self._send = send
        self._stall_s = stall_s
        self._give_up = give_up
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._num_sending = 0  # a ping and an event may come together
        self._moved_at = 0.0
        self._lock = anyio.Lock()
        self._start: Message = {}
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._begin()
        try:
            if not self.started:
                await self._send_start()
            await self._send(message)
        except OSError:  # ASGI 2.4: the client is gone
            raise ClientDisconnect from None
        finally:
            self._num_sending -= 1
            if self._num_sending:
                self._moved_at = self._loop.time()

    def close(self) -> None:
        """Nothing is sent any more."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send_start(self) -> None:
        async with self._lock:
            if not self.started:
                await self._send(self._start)
                self.started = True
                self._moved_at = self._loop.time()

    def _begin(self) -> None:
        if not self._num_sending:
            self._moved_at = self._loop.time()
        self._num_sending += 1
        if self._timer is None:
            self._watch()

    def _watch(self) -> None:
        self._timer = self._loop.call_at(self._moved_at + self._stall_s, self._judge)

    def _judge(self) -> None:
        self._timer = None
        if self._num_sending and self._loop.time() >= self._moved_at + self._stall_s:
            self._give_up()
        elif self._num_sending:
            self._watch()


class LazyStream:
    """A request's outputs. It is started when the first one is asked for, so that its wait for a
    turn is part of the response: pings go out meanwhile. `aclose` ends what was started.

    Whoever asks for an output has dealt with the one before: written it, where the response is a
    stream. The timeline hears of both.
    """

    def __init__(self, open_stream: OpenStream, timeline: Timeline, held: ClientSend) -> None:
        self._open_stream = open_stream
        self._timeline = timeline
        self._held = held
        self._scope = AsyncExitStack()
        self._source: OutputStream | None = None
        self._last: OrchOutput | None = None

    def __aiter__(self) -> LazyStream:
        return self

    async def __anext__(self) -> OrchOutput:
        if self._source is None:
            self._timeline.asked_at = anyio.current_time()
            self._source = await self._scope.enter_async_context(self._open_stream())
            self._timeline.admit(self._source.records)
        elif self._last is not None and self._held.started:
            self._timeline.wrote(self._last)
        self._last = None
        self._last = await anext(self._source)
        self._timeline.made(self._last)
        return self._last

    async def aclose(self) -> None:
        """Leave the request's scope, if it was entered."""
        await self._scope.aclose()


class LiveResponse(Response):
    """Runs the request's stream, and lets `reply` send what comes out of it.

    `reply` gets the outputs, the scope and the held `send`. Raises what the request or the reply
    raises, as BrokenStreamError once bytes are out; returns without a complete response if the
    client left.
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
        reading = anyio.CancelScope()
        held = ClientSend(send, self._stall_s, reading.cancel)
        try:
            stream = LazyStream(self._open_stream, scope[TIMELINE], held)
            async with while_connected(receive), aclosing(stream) as source:
                with reading:
                    await self._reply(Outputs(source), scope, held)
        except ClientDisconnect:
            return
        except Exception as error:
            if held.started:
                log_failure(error)
                raise BrokenStreamError from error
            raise
        finally:
            held.close()
        if reading.cancelled_caught:
            log.warning("reader_stalled", after_s=self._stall_s)
            raise BrokenStreamError from StalledReaderError()


@asynccontextmanager
async def while_connected(receive: Receive) -> AsyncIterator[None]:
    """Cancel the body as soon as the client leaves, and go on behind it."""
    with ungrouped():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_on_disconnect, receive, tasks.cancel_scope)
            yield
            tasks.cancel_scope.cancel()


async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def receive_nothing() -> Message:
    """A `receive` for responses whose client is watched already."""
    await anyio.sleep_forever()
    raise AssertionError("forever ended")
