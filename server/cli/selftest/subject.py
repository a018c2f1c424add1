"""The server under test: how checks send requests to it, and how they report a wrong response."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from server.cli.client.api import DONE, TIMEOUT, event_data

if TYPE_CHECKING:
    import httpx2

SPEECH = "/v1/audio/speech"
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
TEXT = "One small step, and then another."
MESSAGES = [{"role": "user", "content": "Say hello."}]
NOT_OFFERED_STATUSES = (404, 405, 501)


class WrongError(AssertionError):
    """The server's response is wrong. The message says how."""


class NotOfferedError(Exception):
    """The server does not offer what the check needs: the route, or a model."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The server under test, and the models and voice to test with. An empty model id: none."""

    client: httpx2.Client
    speech_model: str
    chat_model: str
    voice: str

    def speech(self, **fields: object) -> dict[str, Any]:
        """The body of a speech request. Raises NotOfferedError without a speech model."""
        if not self.speech_model:
            raise NotOfferedError("no speech model")
        return {"model": self.speech_model, "voice": self.voice, "input": TEXT, **fields}

    def chat(self, **fields: object) -> dict[str, Any]:
        """The body of a chat request. Raises NotOfferedError without a chat model."""
        return {"model": self.text_model, "messages": MESSAGES, "max_tokens": 24, **fields}

    def audio_chat(self, format_: str, **fields: object) -> dict[str, Any]:
        """The body of a chat request for an answer in text and audio."""
        audio = {"voice": self.voice, "format": format_}
        return self.chat(modalities=["text", "audio"], audio=audio, **fields)

    @property
    def text_model(self) -> str:
        """The chat model. Raises NotOfferedError if there is none."""
        if not self.chat_model:
            raise NotOfferedError("no chat model")
        return self.chat_model

    def get(self, path: str) -> httpx2.Response:
        """GET a path. Raises WrongError or NotOfferedError unless the status is a success."""
        return _require_success(self.client.get(path))

    def post(self, path: str, body: object) -> httpx2.Response:
        """POST a body. Raises WrongError or NotOfferedError unless the status is a success."""
        return _require_success(self.client.post(path, json=body))

    def stream(self, path: str, body: object) -> list[str]:
        """POST a body, and collect the data of all events, including `[DONE]` if it is sent."""
        with self.client.stream("POST", path, json=body, timeout=TIMEOUT) as response:
            if not response.is_success:
                response.read()
            _require_success(response)
            content_type = response.headers.get("content-type", "")
            expect(
                content_type.startswith("text/event-stream"),
                f"the content type is {content_type!r}, expected text/event-stream",
            )
            return list(event_data(response.iter_lines()))

    def chunks(self, path: str, body: object) -> list[dict[str, Any]]:
        """POST a body, and collect the chunks of a stream that must end with one `[DONE]`."""
        *chunks, last = self.stream(path, body) or [""]
        expect(last == DONE, f"the last event is {last[:80]!r}, not {DONE}")
        expect(DONE not in chunks, f"{DONE} is sent more than once")
        return [json.loads(chunk) for chunk in chunks]

    def expect_refusal(self, path: str, body: object, status: int = 400) -> None:
        """POST a body that must be refused with `status` and an error object."""
        expect_error(self.client.post(path, json=body), status)


def _require_success(response: httpx2.Response) -> httpx2.Response:
    if response.is_success:
        return response
    _require_route(response)
    raise WrongError(f"HTTP {response.status_code}: {response.text[:200]}")


def _require_route(response: httpx2.Response) -> None:
    """Raise NotOfferedError if the route is missing. A 404 about a model does not count as that."""
    if response.status_code in NOT_OFFERED_STATUSES and "model" not in response.text:
        raise NotOfferedError(f"HTTP {response.status_code}")


def expect_error(response: httpx2.Response, status: int) -> None:
    """Raise WrongError unless the response has this status and an error object as OpenAI's."""
    _require_route(response)
    seen = f"HTTP {response.status_code}: {response.text[:120]}"
    expect(response.status_code == status, f"{seen}; expected HTTP {status}")
    try:
        error: dict[str, Any] = response.json()["error"]
        expect(isinstance(error["message"], str), "the error's message is not a string")
        expect(isinstance(error["type"], str), "the error's type is not a string")
    except (ValueError, KeyError, TypeError) as problem:
        raise WrongError(f"{seen}: it has no error object with message and type") from problem


def expect(condition: object, otherwise: str) -> None:
    """Raise WrongError with the message `otherwise` unless the condition is true."""
    if not condition:
        raise WrongError(otherwise)
