"""Server-sent events: ready-framed bytes, comments as pings, and how a stream fails.

Only `data:` lines, LF, no `id:`, and `event:` only where a contract has it: the official clients
stumble over the rest.
Silence is broken by a comment, also before the first event: the headers wait for the first event
or the first comment, whichever comes first.
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
    """One event; `body` is JSON without line breaks, in parts so that it is copied once."""
    return b"".join((b"data: ", *body, b"\n\n"))


def named_event(name: str, body: bytes) -> bytes:
    """One event with its name, as the events of `/v1/responses` have it."""
    return b"event: " + name.encode() + b"\n" + event(body)


def _failure(envelope: ErrorEnvelope) -> bytes:
    return event(envelope.wire())


def _ping() -> ServerSentEvent:
    return ServerSentEvent(comment="ping", sep="\n")


class Events(EventSourceResponse):
    """The library's response for frames that are ready, which it would log, encode and time.

    Also without its watch on the process's end, which polls: the server lets streams finish on
    shutdown and cuts them after its grace time.
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
        async with self._send_lock:  # no ping after the end
            self.active = False
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen_for_exit_signal_with_grace(self) -> None:
        await anyio.sleep_forever()


async def send_events(
    frames: AsyncGenerator[bytes],
    scope: Scope,
    send: ClientSend,
    ping_s: float,
    failure: Callable[[ErrorEnvelope], bytes] = _failure,
) -> None:
    """Send ready frames as they come.

    A failure is raised; if bytes are out, it is told in one last event before, by `failure`.
    """
    response = Events(_telling_failure(frames, send, failure), ping_s)
    await response(scope, receive_nothing, send)


async def _telling_failure(
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
