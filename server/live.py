"""A response that runs its request while it is sent, and stops it when the client leaves.

The request's scope is inside the response, so everything it holds is free when the response ends,
however it ends. The client is watched from the first moment, also while the producer is blocked,
under every version of ASGI. Headers wait for the first bytes: what fails before them is an
exception out of the response, and gets a status of its own.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from server.errors import BrokenStreamError, log_failure
from server.groups import ungrouped
from server.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import Message, Receive, Scope, Send

    from orchestrator import OrchOutput


class HeldSend:
    """Sends the response's start together with its first body message. `started`: it is out.

    Raises ClientDisconnect where the server says that nobody is there any more.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = anyio.Lock()
        self._start: Message = {}
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        try:
            if not self.started:
                await self._send_start()
            await self._send(message)
        except OSError:  # ASGI 2.4: the client is gone
            raise ClientDisconnect from None

    async def _send_start(self) -> None:
        async with self._lock:  # a ping and the first event may come together
            if not self.started:
                await self._send(self._start)
                self.started = True


class LiveResponse(Response):
    """Opens the request's stream, and lets `reply` send what comes out of it.

    `reply` gets the outputs, the scope and the held `send`. Raises what the request or the reply
    raises, as BrokenStreamError once bytes are out; returns without a complete response if the
    client left.
    """

    def __init__(
        self,
        open_stream: Callable[[], AbstractAsyncContextManager[AsyncIterator[OrchOutput]]],
        reply: Callable[[Outputs, Scope, HeldSend], Awaitable[None]],
    ) -> None:
        super().__init__()
        self._open_stream = open_stream
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        held = HeldSend(send)
        try:
            async with self._open_stream() as source, while_connected(receive):
                await self._reply(Outputs(source), scope, held)
        except ClientDisconnect:
            return
        except Exception as error:
            if held.started:
                log_failure(error)
                raise BrokenStreamError from error
            raise


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


async def never() -> Message:
    """A `receive` for responses whose client is watched already."""
    await anyio.sleep_forever()
    raise AssertionError("forever ended")
