"""Answers browsers that ask whether a page of another origin may use the server.

Around everything that can refuse a request, so that a page can read errors too.
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
READABLE = ("x-request-id", "openai-processing-ms", "retry-after", "x-should-retry")


class Cors(CORSMiddleware):
    """Lets pages of `origins` in, with any request headers, without cookies."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=["*"],
            expose_headers=READABLE,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """The base's answer; a refusal in the form of all other errors."""
        answer = super().preflight_response(request_headers)
        if answer.status_code < 400:
            return answer
        reason = bytes(answer.body).decode()
        refusal = error_response(RefusedError(Problem(f"{reason}.")))
        refusal.headers["vary"] = answer.headers["vary"]
        return refusal
