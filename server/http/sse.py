"""Server-sent events: how events are framed, pings, and how a stream reports a failure.

Events have only `data:` lines, LF and no `id:`. They have `event:` only where the contract of the
endpoint has it. OpenAI's own clients fail on anything else. A comment is sent from time to time as
a ping, also before the first event. The headers are sent with the first event or the first ping.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio
from sse_starlette import EventSourceResponse, ServerSentEvent

from server.errors import answer_to
from server.http.live_response import receive_nothing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from starlette.types import Scope, Send

    from openapi.errors import ErrorEnvelope
    from server.http.live_response import ClientSend

DONE = b"data: [DONE]\n\n"


def event(*body: bytes) -> bytes:
    """One event. `body` is JSON without line breaks, in parts, so that it is copied only once."""
    return b"".join((b"data: ", *body, b"\n\n"))


def named_event(name: str, body: bytes) -> bytes:
    """One event with a name, as `/v1/responses` has them."""
    return b"event: " + name.encode() + b"\n" + event(body)


def _failure_event(envelope: ErrorEnvelope) -> bytes:
    return event(envelope.wire())


def _ping() -> ServerSentEvent:
    return ServerSentEvent(comment="ping", sep="\n")


class Events(EventSourceResponse):
    """The library's response, for frames that are already encoded.

    It leaves out the library's logging, encoding and send timeout. It also leaves out its check for
    the end of the process, which polls: at shutdown the server waits for streams, then aborts them.
    """

    def __init__(self, frames: AsyncGenerator[bytes], ping_s: float) -> None:
        super().__init__(
            frames,
            headers={"Cache-Control": "no-cache"},
            ping=ping_s,
            sep="\n",
            ping_message_factory=_ping,
        )
        self._frames = frames

    async def _stream_response(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        async with self._send_lock:  # no ping may follow the end
            self.active = False
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen_for_exit_signal_with_grace(self) -> None:
        await anyio.sleep_forever()


async def send_events(
    frames: AsyncGenerator[bytes],
    scope: Scope,
    send: ClientSend,
    ping_s: float,
    failure: Callable[[ErrorEnvelope], bytes] = _failure_event,
) -> None:
    """Send encoded frames as they come.

    An error of `frames` is raised. If the response has started, one last event that `failure` makes
    is sent before.
    """
    response = Events(_with_failure_event(frames, send, failure), ping_s)
    await response(scope, receive_nothing, send)


async def _with_failure_event(
    frames: AsyncGenerator[bytes], send: ClientSend, failure: Callable[[ErrorEnvelope], bytes]
) -> AsyncGenerator[bytes]:
    try:
        async with aclosing(frames):
            async for frame in frames:
                yield frame
    except Exception as error:
        if send.started:
            yield failure(answer_to(error).body)
        raise
