"""What the commands need of a server: its address, its models, its errors and its events.

It knows only the HTTP API, so it works with other servers too.
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
MAX_MESSAGE_CHARS = 200  # of a refusal that is not JSON


class RemoteError(ServerError):
    """The server refused the request or could not be reached. The message is one line."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A server's URL, with or without `/v1` at its end, and the API key; empty: none."""

    url: str
    api_key: str = ""

    @property
    def base_url(self) -> str:
        """The URL without `/v1`, with `http://` if no scheme was given."""
        url = self.url if "://" in self.url else f"http://{self.url}"
        return url.rstrip("/").removesuffix("/v1")

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        return {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}


def open_client(server: ServerAddress) -> httpx2.Client:
    """Make an HTTP client of the server. Requests take paths such as `/v1/models`."""
    return httpx2.Client(base_url=server.base_url, headers=server.headers, timeout=TIMEOUT)


@dataclass(frozen=True, slots=True)
class ModelNames:
    """The model ids that a server lists: its speech models, and all others."""

    speech: tuple[str, ...]
    others: tuple[str, ...]


def list_models(client: httpx2.Client) -> ModelNames:
    """Ask the server for its models. A list that it does not offer (404) counts as empty.

    Raises RemoteError.
    """
    speech = _model_ids(client, "/v1/audio/models")
    all_models = _model_ids(client, "/v1/models")
    return ModelNames(speech, tuple(name for name in all_models if name not in speech))


def _model_ids(client: httpx2.Client, path: str) -> tuple[str, ...]:
    try:
        response = client.get(path)
    except httpx2.HTTPError as error:
        raise RemoteError(f"{client.base_url}: {error}") from error
    if response.status_code == HTTPStatus.NOT_FOUND:
        return ()
    raise_for_error(response)
    return tuple(str(model["id"]) for model in response.json()["data"])


def raise_for_error(response: httpx2.Response) -> None:
    """Raise RemoteError with the server's own message, unless the status is a success."""
    if response.is_success:
        return
    response.read()
    raise RemoteError(f"HTTP {response.status_code}: {_error_message(response)}")


def _error_message(response: httpx2.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return response.text[:MAX_MESSAGE_CHARS].replace("\n", " ") or response.reason_phrase


def event_data(lines: Iterable[str]) -> Iterator[str]:
    """The data of each server-sent event, `[DONE]` included. An error event raises RemoteError."""
    for line in lines:
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data != DONE and (error := json.loads(data).get("error")) is not None:
            raise RemoteError(str(error["message"]))
        yield data
