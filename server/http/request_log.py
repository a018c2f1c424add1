"""The outermost layer: a request's id, its time, and its one line in the log.

Pure ASGI around everything, so that every response has these headers, errors too. A valid id that
the client sends is kept, but only echoed and logged: nothing in the server is keyed by it.
"""

from __future__ import annotations

import re
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
import structlog
from starlette.datastructures import Headers, MutableHeaders

from server.errors import StalledReaderError, answer_to
from server.http.auth import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from server.observe import Observer, Timeline
    from server.observe.timeline import Outcome

log = structlog.get_logger(__name__)

VALID_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
QUIET_PATHS = ("/health", "/metrics", "/debug/")

CLIENT_LEFT = 499
# The outcome of a response by its status. All other 4xx are `invalid`, all other 5xx `failed`.
OUTCOMES: Mapping[int, Outcome] = {
    429: "overloaded",
    CLIENT_LEFT: "left",
    503: "unavailable",
    504: "deadline",
}


class RequestLog:
    """Wraps an ASGI app: adds `x-request-id` and `openai-processing-ms`, and logs each request."""

    def __init__(self, app: ASGIApp, observer: Observer) -> None:
        self._app = app
        self.observer = observer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        name = request_id(headers.get("x-request-id", ""))
        exchange = ExchangeLog(scope, send, name, self.observer.start(scope, name, headers))
        try:
            await self._app(scope, receive, exchange.send)
        except Exception as error:
            exchange.error = error
            raise
        finally:
            exchange.finish()


class ExchangeLog:
    """Watches one request and its response from outside, and writes the line about it."""

    def __init__(self, scope: Scope, send: Send, name: str, timeline: Timeline | None) -> None:
        self._scope = scope
        self._send = send
        self._started_at = anyio.current_time()
        self._request_id = name
        self._timeline = timeline
        self._status = 0
        self._first_byte_ms: int | None = None
        self._num_bytes = 0
        self._complete = False
        self.error: Exception | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on. The start of the response gets our headers."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._request_id
            headers["openai-processing-ms"] = str(self._elapsed_ms())
        else:
            self._count(message)
        await self._send(message)

    def finish(self) -> None:
        """No more is sent, complete or not: finish the timeline and write the line."""
        if self._timeline is not None:
            self._timeline.finish(self._seen_status, self._outcome)
        self._log()

    @property
    def _seen_status(self) -> int:
        """The status that the client saw; 499 if it left before the end."""
        return self._status if self._complete or self.error else CLIENT_LEFT

    @property
    def _outcome(self) -> Outcome:
        """How the response ended. An error after the first byte counts as one before it."""
        cause = self.error and self.error.__cause__
        if isinstance(cause, StalledReaderError):
            return "stalled"
        status = answer_to(cause).status if isinstance(cause, Exception) else self._seen_status
        if status < HTTPStatus.BAD_REQUEST:
            return "ok"
        other: Outcome = "failed" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "invalid"
        return OUTCOMES.get(status, other)

    def _log(self) -> None:
        write = log.debug if self._scope["path"].startswith(QUIET_PATHS) else log.info
        write(
            "request",
            id=self._request_id,
            method=self._scope["method"],
            path=quote(self._scope["path"]),
            status=self._seen_status,
            ms=self._elapsed_ms(),
            first_byte_ms=self._first_byte_ms,
            bytes=self._num_bytes,
            key=self._scope.get(KEY),
            error=self.error and type(self.error.__cause__ or self.error).__name__,
            **(log_fields(self._timeline) if self._timeline is not None else {}),
        )

    def _count(self, message: Message) -> None:
        body = message.get("body", b"")
        if body and self._first_byte_ms is None:
            self._first_byte_ms = self._elapsed_ms()
            if self._timeline is not None:
                self._timeline.first_byte_at = anyio.current_time()
        self._num_bytes += len(body)
        self._complete = not message.get("more_body", False)

    def _elapsed_ms(self) -> int:
        return int((anyio.current_time() - self._started_at) * 1000)


def log_fields(timeline: Timeline) -> dict[str, Any]:
    """The log line's fields for a request that generates.

    They contain no text of the user, unless `log_texts` is set.
    """
    ms = timeline.since_received_ms
    fields = {
        "model": timeline.model,
        "outcome": timeline.outcome,
        "admitted_ms": ms(timeline.admitted_at),
        "first_token_ms": ms(timeline.first_token_at),
        "first_audio_ms": ms(timeline.first_audio_at),
        "audio_ms": round(1000 * timeline.audio_s),
        "underruns": timeline.num_underruns,
        "run": timeline.records[0].request_id if timeline.records else None,
    }
    return fields if timeline.body is None else {**fields, "body": timeline.body}


def request_id(sent: str) -> str:
    """The id that the client sent if it is valid, else a new one."""
    return sent if VALID_ID.fullmatch(sent) else f"req_{secrets.token_hex(16)}"
