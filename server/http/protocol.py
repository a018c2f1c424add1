"""The HTTP protocol with limits for incoming requests: the time they take, and the size of a head.

uvicorn waits without limit for the rest of a request. Here the head and the body have a time limit
each. A client that takes longer gets status 408, and its connection is closed. Errors at this level
have the same JSON format as all others. An offer to upgrade to another protocol (h2c, WebSocket) is
declined: the request is served as if it had no offer.
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

FRAMING_HEADERS = (b"content-length", b"transfer-encoding")


class LimitedProtocol(HttpToolsProtocol):
    """One connection. `limited_protocol` makes a subclass that has the `settings` of a server."""

    settings: Settings
    batch: WriteBatch

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._head_bytes = 0
        self._is_declining = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A new connection must send its first head within `header_s`."""
        super().connection_made(BatchingTransport(transport, self.batch))
        self._start_timer(self.settings.header_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed: stop the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse `data`. Between requests the keep-alive time applies until the first byte comes."""
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
            self._start_timer(self.settings.header_s)

    def on_message_begin(self) -> None:
        """A head begins: it must be complete within `header_s`."""
        super().on_message_begin()
        self._in_head = True
        self._head_bytes = 0
        if self._timer is None:
            self._start_timer(self.settings.header_s)

    def on_headers_complete(self) -> None:
        """The head is complete; the body must be complete within `body_s`."""
        self._in_head = False
        self._start_timer(self.settings.body_s)
        if not self._is_declining:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is complete, unless it has an offer and its body comes next (`_decline`)."""
        if not self.parser.should_upgrade():
            self._stop_timer()
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
        """Continue with the body of a request that offers to upgrade.

        The parser stops after such a head. A new parser is fed a head without the offer, but with
        the same framing, and then reads the body.
        """
        framing = [b"%s: %s\r\n" % field for field in self.headers if field[0] in FRAMING_HEADERS]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the base does
        self._is_declining = True
        self.parser.feed_data(b"POST / HTTP/1.1\r\n%s\r\n" % b"".join(framing))
        self._is_declining = False

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def _response_started(self) -> bool:
        return self.cycle is not None and self.cycle.response_started

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._on_timeout)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, "The request did not arrive in time.")

    def _refuse(self, status: int, message: str) -> None:
        """Answer with an error if the client still waits for a response; close the connection."""
        is_waiting = self._is_idle if self._in_head else not self._response_started
        if is_waiting:
            self.transport.write(_error_response(status, message))
        self.transport.close()


def limited_protocol(settings: Settings) -> type[LimitedProtocol]:
    """The protocol class of a server with these settings."""
    return type("ServerProtocol", (LimitedProtocol,), {"settings": settings, "batch": WriteBatch()})


def _error_response(status: int, message: str) -> bytes:
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
