"""The server's errors, and the one table that turns errors into a status and a body.

ServerError
├── RefusedError        the request is wrong; the client is told what to change
│   ├── UnknownModelError   it names a model that is not served
│   ├── UnknownVoiceError   it names a voice that was not uploaded
│   ├── UnknownResponseError  it names a response that is not stored
│   ├── UnknownTimelineError  it names a request whose timeline is not kept
│   ├── TooLargeError       its body is larger than the limit
│   ├── NoKeyError          it has no API key, and the server requires one
│   └── WrongKeyError       its API key is not one of the server's
├── StalledReaderError  the client has stopped reading
└── BrokenStreamError   the response failed after its first byte

The errors of the stages (`stages/contract/errors.py`) are in the same table. Any other exception is
a bug: the answer is 500, without details.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from starlette.requests import ClientDisconnect

from openapi.errors import ErrorDetail, ErrorEnvelope
from openapi.problems import MAX_ECHO_CHARS, Problem
from stages.contract.errors import (
    AbortedError,
    DeadlineError,
    OmniError,
    OverloadedError,
    UnavailableError,
    WorkerDiedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException

log = structlog.get_logger(__name__)

INVALID = "invalid_request_error"
UNAVAILABLE = "service_unavailable_error"
NO_KEY = (
    "You didn't provide an API key. You need to provide your API key in an Authorization header "
    "using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
)
SORRY = "The server had an error while processing your request. Sorry about that!"


class ServerError(Exception):
    """Base class of the server's errors."""


class RefusedError(ServerError):
    """A request that cannot be served as it is. `problem` tells the client why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class UnknownModelError(RefusedError):
    """No model with this name is served."""

    def __init__(self, name: str) -> None:
        message = f"The model '{name[:MAX_ECHO_CHARS]}' does not exist"
        super().__init__(Problem(message, "model", "model_not_found"))


class UnknownVoiceError(RefusedError):
    """No voice with this name was uploaded."""

    def __init__(self, name: str) -> None:
        message = f"No voice '{name[:MAX_ECHO_CHARS]}' was added"
        super().__init__(Problem(message, "voice", "voice_not_found"))


class UnknownResponseError(RefusedError):
    """No response with this id is stored (any more)."""

    def __init__(self, response_id: str) -> None:
        message = f"Response with id '{response_id[:MAX_ECHO_CHARS]}' not found."
        super().__init__(Problem(message, "response_id", "not_found"))


class UnknownTimelineError(RefusedError):
    """No timeline of a request with this id is kept (any more)."""

    def __init__(self, request_id: str) -> None:
        message = f"Request with id '{request_id[:MAX_ECHO_CHARS]}' not found."
        super().__init__(Problem(message, "request_id", "not_found"))


class TooLargeError(RefusedError):
    """A body of more than `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(Problem(f"The request body is larger than {max_bytes} bytes."))


class StalledReaderError(ServerError):
    """A client that read nothing for longer than the setting `stall_s`."""


class NoKeyError(RefusedError):
    """A request without an API key."""

    def __init__(self) -> None:
        super().__init__(Problem(NO_KEY))


class WrongKeyError(RefusedError):
    """An API key that the server does not know. The message does not repeat it."""

    def __init__(self) -> None:
        super().__init__(Problem("Incorrect API key provided.", None, "invalid_api_key"))


class BrokenStreamError(ServerError):
    """Raised to drop the connection, so that no client takes a partial response as complete."""


@dataclass(frozen=True, slots=True)
class Row:
    """How one class of errors is answered. With `message` None the error's own message is sent."""

    status: int
    type: str
    code: str | None = None
    message: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


NO_RETRY = {"x-should-retry": "false"}
RETRY_SOON = {"Retry-After": "2"}
WANTS_KEY = {"WWW-Authenticate": "Bearer"}

TABLE: Mapping[type[Exception], Row] = {
    UnknownModelError: Row(404, INVALID),
    UnknownVoiceError: Row(404, INVALID),
    UnknownResponseError: Row(404, INVALID),
    UnknownTimelineError: Row(404, INVALID),
    TooLargeError: Row(413, INVALID, "request_too_large", headers={"Connection": "close"}),
    NoKeyError: Row(401, INVALID, headers=WANTS_KEY),
    WrongKeyError: Row(401, INVALID, headers=WANTS_KEY),
    RefusedError: Row(400, INVALID),
    ClientDisconnect: Row(499, INVALID, "client_disconnected", "The client left."),
    DeadlineError: Row(
        504, "server_error", "deadline_exceeded", "The request took too long.", NO_RETRY
    ),
    UnavailableError: Row(
        503,
        UNAVAILABLE,
        "model_not_ready",
        "The model is being started. Please try again soon.",
        RETRY_SOON,
    ),
    WorkerDiedError: Row(
        503,
        UNAVAILABLE,
        "worker_died",
        "A part of the model stopped and is being started again.",
        RETRY_SOON,
    ),
    OverloadedError: Row(
        429,
        "requests",
        "rate_limit_exceeded",
        "The server is busy: too many requests run or wait. Please try again soon.",
        RETRY_SOON,
    ),
    AbortedError: Row(
        503, UNAVAILABLE, "aborted", "The request was ended by the server.", RETRY_SOON
    ),
    OmniError: Row(500, "server_error", "generation_failed", SORRY),
    Exception: Row(500, "server_error", message=SORRY),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to an error, as the client gets it."""

    status: int
    body: ErrorEnvelope
    headers: Mapping[str, str]


def answer_to(error: Exception) -> Answer:
    """The answer to an error, by the nearest of its base classes in the table."""
    row = next(TABLE[kind] for kind in type(error).__mro__ if kind in TABLE)
    problem = error.problem if isinstance(error, RefusedError) else Problem(str(error))
    message, code = row.message or problem.message, row.code or problem.code
    body = envelope(message, row.type, problem.param, code)
    return Answer(row.status, body, row.headers)


def answer_to_http(error: HTTPException, method: str, path: str) -> Answer:
    """The answer to an error of the router: unknown URL or wrong method."""
    messages = {
        404: f"Invalid URL ({method} {path})",
        405: f"Invalid method for URL ({method} {path})",
    }
    message = messages.get(error.status_code, error.detail)
    body = envelope(message, INVALID, None, None)
    return Answer(error.status_code, body, error.headers or {})


def log_failure(error: Exception) -> None:
    """Log a failure by its classes only: its message may contain text of the user."""
    cause = error.__cause__
    log.warning(
        "failure", error=type(error).__name__, cause=type(cause).__name__ if cause else None
    )
    log.debug("failure", exc_info=error)


def envelope(message: str, kind: str, param: str | None, code: str | None) -> ErrorEnvelope:
    """The body of an error. All four keys are always there."""
    return ErrorEnvelope(error=ErrorDetail(message=message, type=kind, param=param, code=code))
