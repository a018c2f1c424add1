"""Downloads a request's timeline from a running server, in the format that trace viewers open."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2

from server.errors import ServerError

if TYPE_CHECKING:
    from pathlib import Path

    from server.cli.client.api import ServerAddress

NOT_FOUND = (
    "the server has no timeline of this request: it keeps those of the last few hundred requests,"
    " and only if it was started with NANO_OMNI_DEBUG_ROUTES=true"
)


class NoTraceError(ServerError):
    """The server does not have the timeline, refused the request, or could not be reached."""


def write_trace(server: ServerAddress, request_id: str, path: Path) -> None:
    """Write the trace to `path`. If it raises NoTraceError, nothing was written."""
    url = f"{server.base_url}/debug/requests/{quote(request_id, safe='')}/timeline"
    try:
        response = httpx2.get(url, params={"format": "chrome"}, headers=server.headers)
    except httpx2.HTTPError as error:
        raise NoTraceError(f"{server.url}: {error}") from error
    if response.status_code == HTTPStatus.NOT_FOUND:
        raise NoTraceError(NOT_FOUND)
    if response.status_code != HTTPStatus.OK:
        raise NoTraceError(f"{server.url} answered HTTP {response.status_code}")
    path.write_bytes(response.content)
