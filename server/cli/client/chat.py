"""A conversation with a model. Each reply streams as parts with text, audio or both."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from server.cli.client.api import DONE, RemoteError, event_data, raise_for_error

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """A part of a reply: text, 16-bit samples at 24 kHz, or both."""

    text: str = ""
    pcm: bytes = b""


@dataclass(slots=True)
class Conversation:
    """A conversation with one model of one server. With an empty `voice` replies are text only."""

    client: httpx2.Client
    model: str
    voice: str
    messages: list[dict[str, str]] = field(default_factory=list)

    def ask(self, text: str) -> Generator[ReplyPart]:
        """Send a message and yield the reply as it arrives. Closing it aborts the request.

        The text that arrived becomes part of the conversation, even if the reply is cut short. If
        none arrived, the message is removed again. Raises RemoteError.
        """
        self.messages.append({"role": "user", "content": text})
        answer = ""
        try:
            for part in self._parts():
                answer += part.text
                yield part
        except httpx2.HTTPError as error:
            raise RemoteError(f"{self.client.base_url}: {error}") from error
        finally:
            if answer:
                self.messages.append({"role": "assistant", "content": answer})
            else:
                self.messages.pop()

    def _parts(self) -> Iterator[ReplyPart]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
            "temperature": 0,  # small models ramble at higher temperatures
        }
        if self.voice:
            body |= {
                "modalities": ["text", "audio"],
                "audio": {"voice": self.voice, "format": "pcm16"},
            }
        with self.client.stream("POST", PATH, json=body) as response:
            raise_for_error(response)
            for event in event_data(response.iter_lines()):
                if event == DONE:
                    return
                for choice in json.loads(event)["choices"]:
                    yield _part(choice["delta"])
        raise RemoteError("the stream ended before [DONE]; the reply is incomplete")


def _part(delta: dict[str, Any]) -> ReplyPart:
    audio = delta.get("audio") or {}
    text = delta.get("content") or audio.get("transcript") or ""
    return ReplyPart(text, b64decode(audio.get("data") or ""))
