"""What is checked, and how checks ask it and say what is wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from server.cli.client.api import DONE, TIMEOUT, events

if TYPE_CHECKING:
    import httpx2

SPEECH = "/v1/audio/speech"
CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
TEXT = "One small step, and then another."
QUESTION = [{"role": "user", "content": "Say hello."}]
MISSING = (404, 405, 501)


class WrongError(AssertionError):
    """The server does not do what it should; the message says what it does."""


class NotOfferedError(Exception):
    """The server has nothing of the kind."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A server, and the names to ask it by; a name that is empty is not there."""

    client: httpx2.Client
    speech_model: str
    chat_model: str
    voice: str

    def speech(self, **fields: object) -> dict[str, Any]:
        """The body of a speech request."""
        if not self.speech_model:
            raise NotOfferedError("no speech model")
        return {"model": self.speech_model, "voice": self.voice, "input": TEXT, **fields}

    def chat(self, **fields: object) -> dict[str, Any]:
        """The body of a chat request."""
        return {"model": self.writer, "messages": QUESTION, "max_tokens": 24, **fields}

    def spoken(self, format_: str, **fields: object) -> dict[str, Any]:
        """The body of a chat request that is to be answered in text and sound."""
        audio = {"voice": self.voice, "format": format_}
        return self.chat(modalities=["text", "audio"], audio=audio, **fields)

    @property
    def writer(self) -> str:
        """The chat model's name."""
        if not self.chat_model:
            raise NotOfferedError("no chat model")
        return self.chat_model

    def get(self, path: str) -> httpx2.Response:
        """A reply that is a success."""
        return _success(self.client.get(path))

    def post(self, path: str, body: object) -> httpx2.Response:
        """A reply that is a success."""
        return _success(self.client.post(path, json=body))

    def stream(self, path: str, body: object) -> list[str]:
        """The data of all events; the last is `[DONE]` where the server sends that."""
        with self.client.stream("POST", path, json=body, timeout=TIMEOUT) as reply:
            if not reply.is_success:
                reply.read()
            _success(reply)
            kind = reply.headers.get("content-type", "")
            expect(kind.startswith("text/event-stream"), f"its type is {kind!r}, not events")
            return list(events(reply.iter_lines()))

    def chunks(self, path: str, body: object) -> list[dict[str, Any]]:
        """The chunks of a stream that ends with one `[DONE]`."""
        *found, last = self.stream(path, body) or [""]
        expect(last == DONE, f"the last event is {last[:80]!r}, not {DONE}")
        expect(DONE not in found, f"{DONE} comes more than once")
        return [json.loads(chunk) for chunk in found]

    def refused(self, path: str, body: object, status: int = 400) -> dict[str, Any]:
        """The error that a request is refused with."""
        reply = self.client.post(path, json=body)
        return error_in(reply, status)


def _success(reply: httpx2.Response) -> httpx2.Response:
    if reply.is_success:
        return reply
    _check_offered(reply)
    raise WrongError(f"HTTP {reply.status_code}: {reply.text[:200]}")


def _check_offered(reply: httpx2.Response) -> None:
    """Without the route there is nothing to check. A model that is not there is another thing."""
    if reply.status_code in MISSING and "model" not in reply.text:
        raise NotOfferedError(f"HTTP {reply.status_code}")


def error_in(reply: httpx2.Response, status: int) -> dict[str, Any]:
    """The error of a refusal, which has OpenAI's form."""
    _check_offered(reply)
    said = f"HTTP {reply.status_code}: {reply.text[:120]}"
    expect(reply.status_code == status, f"{said}, where {status} was due")
    try:
        error: dict[str, Any] = reply.json()["error"]
        expect(isinstance(error["message"], str), "the error's message is no text")
        expect(isinstance(error["type"], str), "the error's type is no text")
    except (ValueError, KeyError, TypeError) as problem:
        raise WrongError(f"{said}: it has no error object with message and type") from problem
    return error


def expect(condition: object, otherwise: str) -> None:
    """Raises WrongError where it does not hold."""
    if not condition:
        raise WrongError(otherwise)
