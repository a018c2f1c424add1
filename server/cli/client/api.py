"""A server as its clients see it: where it is, what it has, and what it answers.

Knows only the wire, so that it talks to other servers too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx2

from server.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TIMEOUT = httpx2.Timeout(300.0, connect=10.0)
DONE = "[DONE]"
ECHO_CHARS = 200


class RemoteError(ServerError):
    """A server refused, or could not be reached. The message is one line, what it said itself."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server's address, with or without `/v1` at its end, and the key to it."""

    url: str
    key: str = ""

    @property
    def base(self) -> str:
        """The address without `/v1`."""
        url = self.url if "://" in self.url else f"http://{self.url}"
        return url.rstrip("/").removesuffix("/v1")

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}


def client_of(target: Target) -> httpx2.Client:
    """A client for requests to paths of the server."""
    return httpx2.Client(base_url=target.base, headers=target.headers, timeout=TIMEOUT)


@dataclass(frozen=True, slots=True)
class ModelOffer:
    """The names of a server's models: those that speak texts, and all others."""

    speech: tuple[str, ...]
    others: tuple[str, ...]


def offer_of(client: httpx2.Client) -> ModelOffer:
    """What there is. A server without one of the lists is not known to have such models.

    Raises RemoteError.
    """
    speech = _names(client, "/v1/audio/models")
    others = _names(client, "/v1/models")
    return ModelOffer(speech, tuple(name for name in others if name not in speech))


def _names(client: httpx2.Client, path: str) -> tuple[str, ...]:
    try:
        reply = client.get(path)
    except httpx2.HTTPError as error:
        raise RemoteError(f"{client.base_url}: {error}") from error
    if reply.status_code == HTTPStatus.NOT_FOUND:
        return ()
    check(reply)
    return tuple(str(model["id"]) for model in reply.json()["data"])


def check(reply: httpx2.Response) -> None:
    """Raises RemoteError where it is no success."""
    if reply.is_success:
        return
    reply.read()
    raise RemoteError(f"HTTP {reply.status_code}: {_message(reply)}")


def _message(reply: httpx2.Response) -> str:
    try:
        return str(reply.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return reply.text[:ECHO_CHARS].replace("\n", " ") or reply.reason_phrase


def events(lines: Iterable[str]) -> Iterator[str]:
    """The data of each event, `[DONE]` too. Raises RemoteError for an error in the stream."""
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data != DONE and (problem := json.loads(data).get("error")) is not None:
            raise RemoteError(str(problem["message"]))
        yield data
