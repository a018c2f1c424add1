"""A chat completion as events: which chunks, in which order.

The order is the one that the official clients' accumulators take: the role once and first, the
audio's id once, its expiry once and alone, the finish reason, the usage, `[DONE]`. The first chunk
waits for the first output, and nothing of the end is sent before the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from openapi.chat_chunk import AudioDelta, Delta
from server.audio import pcm
from server.sse import DONE
from stages.messages import AudioChunk, TextChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from server.chat.chunks import Chunks
    from server.chat.reply import ReplyNames
    from server.chat.tally import Tally
    from server.outputs import Outputs

# Three bytes are four characters of base64, two bytes a sample: pieces of six need no padding, so
# that a client may join their base64 as it is.
JOINABLE_BYTES = 6


class Script(Protocol):
    """The chunks of one kind of reply."""

    def first(self) -> bytes:
        """What comes before everything."""

    def take(self, data: Any) -> Iterator[bytes]:
        """What one output becomes."""

    def last(self) -> Iterator[bytes]:
        """What is left when the last output was taken, without the end itself."""


class TextScript:
    """A reply in text."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def first(self) -> bytes:
        """The role, with an empty text."""
        return self._chunks.delta(Delta(role="assistant", content="", refusal=None))

    def take(self, data: Any) -> Iterator[bytes]:
        """Text as it is."""
        if isinstance(data, TextChunk) and data.text:
            yield self._chunks.delta(Delta(content=data.text))

    def last(self) -> Iterator[bytes]:
        """Nothing."""
        return iter(())


class AudioScript:
    """A spoken reply: transcript and samples, in the order in which they come."""

    def __init__(self, chunks: Chunks, names: ReplyNames) -> None:
        self._chunks = chunks
        self._names = names
        self._unsent = b""
        self._named = False

    def first(self) -> bytes:
        """The role, without a text."""
        return self._chunks.delta(Delta(role="assistant", content=None, refusal=None))

    def take(self, data: Any) -> Iterator[bytes]:
        """Transcript at once; samples in pieces that can be joined in base64."""
        if isinstance(data, TextChunk) and data.text:
            yield self._transcript(data.text)
        elif isinstance(data, AudioChunk):
            sound = self._unsent + pcm(data)
            cut = len(sound) - len(sound) % JOINABLE_BYTES
            self._unsent = sound[cut:]
            yield from self._sound(sound[:cut])

    def last(self) -> Iterator[bytes]:
        """The last samples, and how long the reply is kept."""
        yield from self._sound(self._unsent)
        if not self._named:
            yield self._transcript("")
        yield self._chunks.audio(AudioDelta(expires_at=self._names.expires_at))

    def _transcript(self, text: str) -> bytes:
        if self._named:
            return self._chunks.audio(AudioDelta(transcript=text))
        self._named = True
        return self._chunks.audio(AudioDelta(id=self._names.audio_id, transcript=text))

    def _sound(self, samples: bytes) -> Iterator[bytes]:
        if samples:
            if not self._named:
                yield self._transcript("")
            yield self._chunks.sound(samples)


async def chat_frames(
    outputs: Outputs, script: Script, chunks: Chunks, tally: Tally, *, include_usage: bool
) -> AsyncGenerator[bytes]:
    """All frames of a reply. Raises the request's error in the place of an end."""
    begun = False
    async for data in outputs:
        if not begun:
            yield script.first()
            begun = True
        tally.note(data)
        for frame in script.take(data):
            yield frame
    for frame in script.last():
        yield frame
    yield chunks.delta(Delta(), tally.finish_reason)
    if include_usage:
        yield chunks.usage(tally.usage)
    yield DONE
