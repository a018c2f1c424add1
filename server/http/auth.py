"""Checks the API key of each request, if the server has keys.

Health, metrics and the page of the playground need no key. The playground asks the user for one.
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

KEY = "nano_omni.key"  # in the ASGI scope: the name of the request's key
OPEN_PATHS = ("/", "/health", "/health/live", "/health/ready", "/metrics")
OPEN_FOLDER = "/playground/"


def key_of(request: Request) -> str:
    """The name of the request's key; empty if the server has no keys."""
    return str(request.scope.get(KEY, ""))


class Auth:
    """Wraps an ASGI app. OPTIONS requests need no key: their answers reveal nothing."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._keys and not _needs_no_key(scope):
            try:
                scope[KEY] = self._keys.name_of(_token(Headers(scope=scope)))
            except RefusedError as error:
                await error_response(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _needs_no_key(scope: Scope) -> bool:
    path = scope["path"]
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER) or scope["method"] == "OPTIONS"


def _token(headers: Headers) -> bytes:
    """The token after `Bearer`, as it was sent. Raises NoKeyError if there is none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    token = token.strip(" \t")  # other kinds of space may belong to the key
    if scheme.lower() != "bearer" or not token:
        raise NoKeyError
    return token.encode("latin-1")
