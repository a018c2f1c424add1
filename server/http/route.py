"""A route of FastAPI whose endpoint takes the request as it is, and gives the response.

FastAPI documents it and finds it; there is nothing for it to read, to solve or to serialize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.routing import APIRoute

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fastapi import Request, Response


class RawRoute(APIRoute):
    """See above. The endpoint is `async def endpoint(request: Request) -> Response`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """See the base: the endpoint itself."""
        return self.endpoint
