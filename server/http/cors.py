"""CORS: tells browsers whether a page of another origin may use the server.

This layer wraps everything that can refuse a request, so that pages can read errors too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware

from openapi.problems import Problem
from server.errors import RefusedError
from server.http.json_response import error_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.datastructures import Headers
    from starlette.responses import Response
    from starlette.types import ASGIApp

METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")
EXPOSED_HEADERS = ("x-request-id", "openai-processing-ms", "retry-after", "x-should-retry")


class Cors(CORSMiddleware):
    """Allows pages of `origins`, with any request headers and without cookies."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=["*"],
            expose_headers=EXPOSED_HEADERS,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """The answer of the base class; a refusal gets the format of all other errors."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        reason = bytes(answer.body).decode()
        refusal = error_response(RefusedError(Problem(f"{reason}.")))
        refusal.headers["vary"] = answer.headers["vary"]
        return refusal
