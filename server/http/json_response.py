"""JSON responses made from wire models and from errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from server.errors import answer_to, answer_to_http

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.exceptions import HTTPException
    from starlette.types import Scope

    from openapi.base import ResponseModel
    from server.errors import Answer


def wire_response(
    body: ResponseModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """`body` as JSON, with only the fields that were set."""
    return Response(body.wire(), status, headers, media_type="application/json")


def error_response(error: Exception) -> Response:
    """The response to an error of our own, by the table in `server/errors.py`."""
    return _response(answer_to(error))


def http_error_response(error: HTTPException, scope: Scope) -> Response:
    """The response to an error of the router: unknown URL or wrong method."""
    return _response(answer_to_http(error, scope["method"], scope["path"]))


def _response(answer: Answer) -> Response:
    return wire_response(answer.body, answer.status, answer.headers)
