"""The HTTP protocol with limits on how a request comes in: how long, and how large a head.

uvicorn waits for a request that has begun for as long as it takes. Here its head and its body have
a time each; a client that takes longer is told so and its connection is closed. What is refused
before there is a request has the form of all other errors too.
"""

from __future__ import annotations

import re
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.errors import INVALID, envelope
from server.joined import JoiningTransport, Turn

if TYPE_CHECKING:
    import asyncio

    from server.settings import Settings


_OFFER = re.compile(rb"(\r\n)upgrade(?=:[ \t]*(?!websocket))", re.IGNORECASE)


class GuardedProtocol(HttpToolsProtocol):
    """One connection. `settings` is set in a class of its own for each server (`guarded`)."""

    settings: Settings
    turn: Turn

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection without a request has the time of a head."""
        super().connection_made(JoiningTransport(transport, self.turn))
        self._allow(self.settings.header_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See the base. Between requests its keep-alive time holds, until something comes."""
        if self._is_idle or self._in_head:
            data = _without_upgrade(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.settings.max_header_bytes:
                limit = self.settings.max_header_bytes
                self._refuse(431, f"The request's headers are larger than {limit} bytes.")
        elif self._timer is None and self._is_idle:
            self._allow(self.settings.header_s)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._timer is None:
            self._allow(self.settings.header_s)

    def on_headers_complete(self) -> None:
        """The head is there; the body has its own time."""
        self._in_head = False
        self._allow(self.settings.body_s)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is there."""
        self._disarm()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP."""
        self._refuse(400, msg)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _response_started(self) -> bool:
        return self.cycle is not None and self.cycle.response_started

    def _allow(self, seconds: float) -> None:
        self._disarm()
        self._timer = self.loop.call_later(seconds, self._late)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, "The request did not arrive in time.")

    def _refuse(self, status: int, message: str) -> None:
        """Say why, where the client waits for a response to this, and close."""
        unanswered = self._is_idle if self._in_head else not self._response_started
        if unanswered:
            self.transport.write(_response(status, message))
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """A head that offers another protocol (h2c), with the offer renamed.

    A server may ignore the offer; the parser would take what follows for that protocol, and the
    body would be lost.
    """
    if b"pgrade" not in data:
        return data
    head, end, rest = data.partition(b"\r\n\r\n")
    return _OFFER.sub(rb"\1x-upgrade", head) + end + rest


def guarded(settings: Settings) -> type[GuardedProtocol]:
    """The protocol of a server with these settings."""
    return type("Guarded", (GuardedProtocol,), {"settings": settings, "turn": Turn()})


def _response(status: int, message: str) -> bytes:
    body = envelope(message, INVALID, None, None).wire()
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        f"x-request-id: req_{secrets.token_hex(16)}",
        "connection: close",
        "\r\n",
    )
    return "\r\n".join(lines).encode() + body
