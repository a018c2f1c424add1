"""Writes the chunks of a streamed chat completion.

The parts that are the same in all chunks of a choice are serialised once. Audio skips the JSON
serialiser: its base64 is put between constants.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pybase64 import b64encode

from openapi.chat.chunk import AudioDelta, ChatChunk, Delta
from server.http.sse import event
from server.operations.shared.ids import SYSTEM_FINGERPRINT
from server.operations.shared.logprobs import logprobs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openapi.chat.usage import ChatUsage
    from server.operations.chat.reply_ids import ReplyIds
    from stages.contract.messages import TokenScore


class ChunkWriter:
    """Makes the framed chunks of choice `index`.

    With `include_usage`, each chunk says `"usage":null`; `usage_chunk` is then the last one.
    """

    def __init__(self, ids: ReplyIds, index: int, *, include_usage: bool) -> None:
        head = _chunk_without_choices(ids).wire().removesuffix(b"[]}")
        self._head = head + b'[{"index":%d,"delta":' % index
        self._tail = b',"usage":null}' if include_usage else b"}"

    def delta(
        self, delta: Delta, finish_reason: str | None = None, scores: Sequence[TokenScore] = ()
    ) -> bytes:
        """A chunk with a delta. Only the last chunk of a choice has a finish reason."""
        logprobs = logprobs_of(scores).wire() if scores else b"null"
        return self._chunk((delta.wire(),), json.dumps(finish_reason).encode(), logprobs)

    def audio_delta(self, delta: AudioDelta, scores: Sequence[TokenScore] = ()) -> bytes:
        """A chunk about the spoken reply, without samples."""
        return self.delta(Delta(audio=delta), scores=scores)

    def samples(self, samples: bytes, captions: bytes = b"") -> bytes:
        """A chunk of samples. `captions` are JSON already."""
        end = b',"captions":' + captions if captions else b""
        return self._chunk((b'{"audio":{"data":"', b64encode(samples), b'"', end, b"}}"))

    def _chunk(
        self, delta: Sequence[bytes], finish_reason: bytes = b"null", logprobs: bytes = b"null"
    ) -> bytes:
        ending = b',"logprobs":' + logprobs + b',"finish_reason":' + finish_reason + b"}]"
        return event(self._head, *delta, ending, self._tail)


def usage_chunk(ids: ReplyIds, usage: ChatUsage) -> bytes:
    """The last chunk: the usage, and no choices."""
    return event(_chunk_without_choices(ids).model_copy(update={"usage": usage}).wire())


def _chunk_without_choices(ids: ReplyIds) -> ChatChunk:
    return ChatChunk(
        id=ids.completion_id,
        object="chat.completion.chunk",
        created=ids.created,
        model=ids.model,
        service_tier="default",
        system_fingerprint=SYSTEM_FINGERPRINT,
        choices=[],
    )
