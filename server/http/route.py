"""A FastAPI route whose endpoint takes the raw request and returns the response.

FastAPI finds the route and documents it. It parses no body, resolves no dependencies and serializes
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fastapi import Request, Response


class RawRoute(APIRoute):
    """Calls its endpoint directly: `async def endpoint(request: Request) -> Response`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The endpoint itself is the handler."""
        return self.endpoint
