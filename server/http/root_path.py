"""Serves an app below a path as well, for a proxy that puts it there.

Works whether or not the proxy strips that path. The app sees paths without it. No response contains
an absolute path, so nothing has to be changed on the way back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class RootPath:
    """Wraps an ASGI app. `root` is the path, such as `/omni`."""

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(f"{self._root}/"):
            scope = {**scope, "path": scope["path"].removeprefix(self._root)}
        await self._app(scope, receive, send)
