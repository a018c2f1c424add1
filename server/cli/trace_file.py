"""Fetches a request's timeline from a server that runs, in the form that trace viewers open."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2

from server.errors import ServerError

if TYPE_CHECKING:
    from pathlib import Path

HINT = "no such request; is NANO_OMNI_DEBUG_ROUTES on there, and was it among the last few hundred?"


class NoTraceError(ServerError):
    """A server has no such timeline, or could not be asked."""


def write_trace(base_url: str, key: str, request_id: str, path: Path) -> None:
    """Write the trace to `path`. Raises NoTraceError; nothing is written then."""
    url = f"{base_url.rstrip('/').removesuffix('/v1')}/debug/requests/{quote(request_id, safe='')}"
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        reply = httpx2.get(f"{url}/timeline", params={"format": "chrome"}, headers=headers)
    except httpx2.HTTPError as error:
        raise NoTraceError(f"{base_url}: {error}") from error
    if reply.status_code == HTTPStatus.NOT_FOUND:
        raise NoTraceError(HINT)
    if reply.status_code != HTTPStatus.OK:
        raise NoTraceError(f"{base_url} answered {reply.status_code}")
    path.write_bytes(reply.content)
