"""The outermost layer: a request's id, its time, and its one line in the log.

Pure ASGI around everything, so that every response has the headers, those of errors included. The
id is the client's own where it is a sane one, and is echoed only: nothing is keyed by it.
"""

from __future__ import annotations

import re
import secrets
from time import perf_counter
from typing import TYPE_CHECKING
from urllib.parse import quote

import structlog
from starlette.datastructures import Headers, MutableHeaders

from server.auth import KEY
from server.live import RUN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger(__name__)

SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
QUIET_PATHS = "/health"


class Edge:
    """Wraps an ASGI app; adds `x-request-id` and `openai-processing-ms`, and logs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, send)
        try:
            await self._app(scope, receive, exchange.send)
        except Exception as error:
            exchange.error = type(error.__cause__ or error).__name__
            raise
        finally:
            exchange.log()


class Exchange:
    """What is seen of one request and its response from outside."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._started_at = perf_counter()
        self._request_id = request_id(Headers(scope=scope).get("x-request-id", ""))
        self._status = 0
        self._first_byte_ms: int | None = None
        self._num_bytes = 0
        self._complete = False
        self.error: str | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on, with our headers where it starts the response."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._request_id
            headers["openai-processing-ms"] = str(self._elapsed_ms())
        else:
            self._count(message)
        await self._send(message)

    def log(self) -> None:
        """The one line. 499: the client left before the end."""
        write = log.debug if self._scope["path"].startswith(QUIET_PATHS) else log.info
        write(
            "request",
            id=self._request_id,
            method=self._scope["method"],
            path=quote(self._scope["path"]),
            status=self._status if self._complete or self.error else 499,
            ms=self._elapsed_ms(),
            first_byte_ms=self._first_byte_ms,
            bytes=self._num_bytes,
            key=self._scope.get(KEY),
            run=self._scope.get(RUN),
            error=self.error,
        )

    def _count(self, message: Message) -> None:
        body = message.get("body", b"")
        if body and self._first_byte_ms is None:
            self._first_byte_ms = self._elapsed_ms()
        self._num_bytes += len(body)
        self._complete = not message.get("more_body", False)

    def _elapsed_ms(self) -> int:
        return int((perf_counter() - self._started_at) * 1000)


def request_id(sent: str) -> str:
    """The client's id if it is a sane one, else a new one."""
    return sent if SANE_ID.fullmatch(sent) else f"req_{secrets.token_hex(16)}"
