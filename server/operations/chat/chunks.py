"""Frames the chunks of one choice of a streamed chat completion.

What is the same in all of them is written once. Audio goes through no serialiser: its base64 is
put between two constants.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pybase64 import b64encode

from openapi.chat.chunk import AudioDelta, ChatChunk, Delta
from server.http.sse import event
from server.operations.chat.ids import FINGERPRINT
from server.operations.chat.logprobs import logprobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openapi.chat.usage import ChatUsage
    from server.operations.chat.ids import ReplyNames
    from stages.contract.messages import TokenScore


class Chunks:
    """Makes frames. With `include_usage` every chunk but the last says `"usage":null`."""

    def __init__(self, names: ReplyNames, index: int, *, include_usage: bool) -> None:
        head = _bare(names).wire().removesuffix(b"[]}")
        self._head = head + b'[{"index":%d,"delta":' % index
        self._tail = b',"usage":null}' if include_usage else b"}"

    def delta(
        self, delta: Delta, finish_reason: str | None = None, scores: Sequence[TokenScore] = ()
    ) -> bytes:
        """A chunk with something new, or with the reason of the end."""
        logprobs = logprobs_of(scores).wire() if scores else b"null"
        return self._frame((delta.wire(),), json.dumps(finish_reason).encode(), logprobs)

    def audio(self, delta: AudioDelta, scores: Sequence[TokenScore] = ()) -> bytes:
        """A chunk about the spoken reply."""
        return self.delta(Delta(audio=delta), scores=scores)

    def sound(self, samples: bytes, captions: bytes = b"") -> bytes:
        """A chunk of samples, with captions that are JSON already."""
        said = b',"captions":' + captions if captions else b""
        return self._frame((b'{"audio":{"data":"', b64encode(samples), b'"', said, b"}}"))

    def _frame(
        self, delta: Sequence[bytes], finish_reason: bytes = b"null", logprobs: bytes = b"null"
    ) -> bytes:
        ending = b',"logprobs":' + logprobs + b',"finish_reason":' + finish_reason + b"}]"
        return event(self._head, *delta, ending, self._tail)


def usage_chunk(names: ReplyNames, usage: ChatUsage) -> bytes:
    """The last chunk, without choices."""
    return event(_bare(names).model_copy(update={"usage": usage}).wire())


def _bare(names: ReplyNames) -> ChatChunk:
    return ChatChunk(
        id=names.completion_id,
        object="chat.completion.chunk",
        created=names.created,
        model=names.model,
        service_tier="default",
        system_fingerprint=FINGERPRINT,
        choices=[],
    )
