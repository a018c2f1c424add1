"""The HTTP protocol with limits on how a request comes in: how long, and how large a head.

uvicorn waits for a request that has begun for as long as it takes. Here its head and its body have
a time each; a client that takes longer is told so and its connection is closed. What is refused
before there is a request has the form of all other errors too. Offers of another protocol (h2c,
WebSocket) are declined: the request is served as if there were none.
"""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from server.errors import INVALID, envelope
from server.http.write_batching import BatchingTransport, WriteBatch

if TYPE_CHECKING:
    import asyncio

    from server.config.settings import Settings

FRAMING = (b"content-length", b"transfer-encoding")


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `limited_protocol` makes a subclass with the `settings` of a server."""

    settings: Settings
    turn: WriteBatch

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0
        self._declining = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection without a request has the time of a head."""
        super().connection_made(BatchingTransport(transport, self.turn))
        self._allow(self.settings.header_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base."""
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See the base. Between requests its keep-alive time holds, until something comes."""
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse(400, "Invalid HTTP request received.")
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
        if not self._declining:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is there, but for the body of one with an offer (`_decline`)."""
        if not self.parser.should_upgrade():
            self._disarm()
            super().on_message_complete()

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                data = data[offer.args[0] :]
                self._decline()
            else:
                return

    def _decline(self) -> None:
        """Go on with the body of a request after whose head the parser stopped, for the protocol
        that was offered: a new parser is told how the body is framed, by a head without an offer.
        """
        framing = [b"%s: %s\r\n" % field for field in self.headers if field[0] in FRAMING]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the base does
        self._declining = True
        self.parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(framing))
        self._declining = False

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


def limited_protocol(settings: Settings) -> type[LimitedProtocol]:
    """The protocol of a server with these settings."""
    return type("Guarded", (LimitedProtocol,), {"settings": settings, "turn": WriteBatch()})


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
