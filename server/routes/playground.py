"""`GET /`: the playground, a web page to try the server, and the files of that page.

Its content security policy allows only these files: the page loads nothing from other servers.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import PurePath
from typing import TYPE_CHECKING

from fastapi import APIRouter, Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from importlib.resources.abc import Traversable

FOLDER = files("server").joinpath("playground")
PAGE = "index.html"
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def playground_routes() -> APIRouter:
    """A route for each file. They are not part of the API and need no API key."""
    router = APIRouter(include_in_schema=False)
    for file in FOLDER.iterdir():
        path = "/" if file.name == PAGE else f"/playground/{file.name}"
        router.add_api_route(path, _endpoint_for(file))
    return router


def _endpoint_for(file: Traversable) -> Callable[[], Awaitable[Response]]:
    content, media_type = file.read_bytes(), MEDIA_TYPES[PurePath(file.name).suffix]

    async def endpoint() -> Response:
        return Response(content, media_type=media_type, headers=HEADERS)

    return endpoint
