"""Answers HEAD, OPTIONS and wrong methods for every URL.

HEAD is GET without the body. OPTIONS and the refusal of a wrong method list all methods of the URL,
also if several routes share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

from server.http.json_response import http_error_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

ORDER = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")


class Methods:
    """Wraps an ASGI app that has these routes."""

    def __init__(self, app: ASGIApp, routes: Sequence[Route]) -> None:
        self._app = app
        self._routes = routes
        # Most requests are for exactly a route's path, and need no search.
        self._known = {route.path: self._search(route.path) for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = self._methods_at(scope["path"]) if scope["type"] == "http" else set()
        if not allowed or scope["method"] in allowed - {"HEAD", "OPTIONS"}:
            await self._app(scope, receive, send)
        elif scope["method"] == "HEAD" and "HEAD" in allowed:
            await self._app({**scope, "method": "GET"}, receive, _without_body(send))
        else:
            await _answer(scope, allowed)(scope, receive, send)

    def _methods_at(self, path: str) -> set[str]:
        return self._known.get(path) or self._search(path)

    def _search(self, path: str) -> set[str]:
        found: set[str] = set()
        for route in self._routes:
            if route.path_regex.match(path):
                found |= route.methods or set()
        if found:
            found.add("OPTIONS")
        return found | {"HEAD"} if "GET" in found else found


def _answer(scope: Scope, allowed: set[str]) -> Response:
    headers = {"Allow": ", ".join(method for method in ORDER if method in allowed)}
    if scope["method"] == "OPTIONS":
        return Response(status_code=204, headers=headers)
    return http_error_response(HTTPException(405, headers=headers), scope)


def _without_body(send: Send) -> Send:
    async def send_head(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_head
