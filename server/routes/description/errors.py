"""What openapi.json says about errors: all have the same envelope, with examples of each kind."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from openapi.errors import ErrorEnvelope
from openapi.problems import missing
from server.errors import (
    Answer,
    NoKeyError,
    RefusedError,
    TooLargeError,
    UnknownModelError,
    WrongKeyError,
    answer_to,
)
from stages.contract.errors import DeadlineError, OverloadedError, RequestError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable

Answers = dict[int | str, dict[str, Any]]

REFUSALS = (
    RefusedError(missing("input")),
    NoKeyError(),
    WrongKeyError(),
    UnknownModelError("gpt-9"),
    TooLargeError(8 * 2**20),
    OverloadedError(),
)
FAILURES = (RequestError("", ""), UnavailableError(), DeadlineError())


def _label(answer: Answer) -> str:
    words = answer.body.error.code or HTTPStatus(answer.status).phrase
    return f"{answer.status}-{words.replace('_', '-').replace(' ', '-').lower()}"


def _examples(errors: Iterable[Exception]) -> dict[str, Any]:
    answers = [answer_to(error) for error in errors]
    return {_label(answer): {"value": answer.body.model_dump()} for answer in answers}


# `server/document/openapi.py` adds them to the finished document: FastAPI would drop the nulls.
ERROR_EXAMPLES = {"4XX": _examples(REFUSALS), "5XX": _examples(FAILURES)}

HEADERS = {
    "x-request-id": {
        "schema": {"type": "string"},
        "description": "The id of the request. The server's log has the same id.",
    },
    "Retry-After": {
        "schema": {"type": "integer", "minimum": 1, "maximum": 60},
        "description": "With 429 and 503: how many seconds to wait before the next try.",
    },
}
ERRORS: Answers = {
    "4XX": {
        "model": ErrorEnvelope,
        "description": "The request was refused.",
        "headers": HEADERS,
    },
    "5XX": {
        "model": ErrorEnvelope,
        "description": "The server failed or is not ready.",
        "headers": HEADERS,
    },
}
