"""A conversation with a model: each reply comes as pieces of text and of sound."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx2

from server.cli.client.api import DONE, RemoteError, check, events

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """Of a reply: text, 16-bit samples at 24 kHz, or both."""

    text: str = ""
    sound: bytes = b""


@dataclass(slots=True)
class Conversation:
    """With one model of one server. `voice` empty: it only writes."""

    client: httpx2.Client
    model: str
    voice: str
    messages: list[dict[str, str]] = field(default_factory=list)

    def ask(self, text: str) -> Generator[ReplyPart]:
        """Say something; the reply while it is made. Closing it stops the server's work.

        What was heard of the reply becomes part of the conversation. Raises RemoteError.
        """
        self.messages.append({"role": "user", "content": text})
        heard = ""
        try:
            for piece in self._pieces():
                heard += piece.text
                yield piece
        except httpx2.HTTPError as error:
            raise RemoteError(f"{self.client.base_url}: {error}") from error
        finally:
            if heard:
                self.messages.append({"role": "assistant", "content": heard})
            else:
                self.messages.pop()

    def _pieces(self) -> Iterator[ReplyPart]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
            "temperature": 0,  # a small model rambles otherwise
        }
        if self.voice:
            body |= {
                "modalities": ["text", "audio"],
                "audio": {"voice": self.voice, "format": "pcm16"},
            }
        with self.client.stream("POST", PATH, json=body) as reply:
            check(reply)
            for event in events(reply.iter_lines()):
                if event == DONE:
                    return
                for choice in json.loads(event)["choices"]:
                    yield _piece(choice["delta"])
        raise RemoteError("the reply broke off")


def _piece(delta: dict[str, Any]) -> ReplyPart:
    audio = delta.get("audio") or {}
    text = delta.get("content") or audio.get("transcript") or ""
    return ReplyPart(text, b64decode(audio.get("data") or ""))
