"""Lets a request in that has a key, where the server has keys.

Open to all are how it is, how much it does, and the playground's page, which asks for the key.

`key_of` tells a route whose request it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from server.errors import NoKeyError, RefusedError
from server.http.json_response import error_response

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from server.config.keys import Keys

KEY = "nano_omni.key"
OPEN_PATHS = ("/", "/health", "/health/live", "/health/ready", "/metrics")
OPEN_FOLDER = "/playground/"


def key_of(request: Request) -> str:
    """The name of the request's key; empty where the server has no keys."""
    return str(request.scope.get(KEY, ""))


class Auth:
    """Wraps an ASGI app. Requests for what may be done (OPTIONS) need no key: they say nothing."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._keys and not _is_open(scope):
            try:
                scope[KEY] = self._keys.name_of(_token(Headers(scope=scope)))
            except RefusedError as error:
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _is_open(scope: Scope) -> bool:
    path = scope["path"]
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER) or scope["method"] == "OPTIONS"


def _token(headers: Headers) -> bytes:
    """What follows `Bearer`, as it was sent. Raises NoKeyError."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip(" \t")  # other spaces may be bytes of the key
    if scheme.lower() != "bearer" or not token:
        raise NoKeyError
    return token.encode("latin-1")
