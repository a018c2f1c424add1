"""Frames the chunks of one streamed chat completion.

What is the same in all of them is written once. Audio goes through no serialiser: its base64 is
put between two constants.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pybase64 import b64encode

from openapi.chat_chunk import AudioDelta, ChatChunk, Delta
from server.chat.reply import FINGERPRINT
from server.sse import event

if TYPE_CHECKING:
    from openapi.chat_usage import ChatUsage
    from server.chat.reply import ReplyNames


class Chunks:
    """Makes frames. With `include_usage` every chunk but the last says `"usage":null`."""

    def __init__(self, names: ReplyNames, *, include_usage: bool) -> None:
        bare = ChatChunk(
            id=names.completion_id,
            object="chat.completion.chunk",
            created=names.created,
            model=names.model,
            service_tier="default",
            system_fingerprint=FINGERPRINT,
            choices=[],
        )
        self._bare = bare
        self._head = bare.wire().removesuffix(b"[]}") + b'[{"index":0,"delta":'
        self._tail = b',"usage":null}' if include_usage else b"}"

    def delta(self, delta: Delta, finish_reason: str | None = None) -> bytes:
        """A chunk with something new, or with the reason of the end."""
        return self._frame(delta.wire(), json.dumps(finish_reason).encode())

    def audio(self, delta: AudioDelta) -> bytes:
        """A chunk about the spoken reply."""
        return self.delta(Delta(audio=delta))

    def sound(self, samples: bytes) -> bytes:
        """A chunk of samples."""
        return self._frame(b'{"audio":{"data":"' + b64encode(samples) + b'"}}', b"null")

    def usage(self, usage: ChatUsage) -> bytes:
        """The last chunk, without choices."""
        return event(self._bare.model_copy(update={"usage": usage}).wire())

    def _frame(self, delta: bytes, finish_reason: bytes) -> bytes:
        body = delta + b',"logprobs":null,"finish_reason":' + finish_reason + b"}]"
        return event(self._head + body + self._tail)
