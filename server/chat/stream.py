"""A chat completion as events: which chunks, in which order.

The order is the one that the official clients' accumulators take, in each choice: the role once
and first, the audio's id once, its expiry once and alone, the finish reason; then the usage and
`[DONE]`, once. Choices are first seen in the order of their index. The first chunk waits for the
first output, and nothing of a choice's end is sent before its terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from openapi.chat_chunk import AudioDelta, Delta
from server.audio import pcm
from server.sse import DONE
from stages.messages import AudioChunk, TextChunk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from server.chat.chunks import Chunks
    from server.chat.tally import Tally
    from server.outputs import Outputs
    from stages.messages import TokenScore

# Three bytes are four characters of base64, two bytes a sample: pieces of six need no padding, so
# that a client may join their base64 as it is.
JOINABLE_BYTES = 6


class Script(Protocol):
    """The chunks of one choice."""

    def first(self) -> bytes:
        """What comes before everything."""

    def take(self, data: Any) -> Iterator[bytes]:
        """What one output becomes."""

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """What is left when the last output was taken, and the end itself."""


class TextScript:
    """A reply in text."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def first(self) -> bytes:
        """The role, with an empty text."""
        return self._chunks.delta(Delta(role="assistant", content="", refusal=None))

    def take(self, data: Any) -> Iterator[bytes]:
        """Text as it is."""
        if isinstance(data, TextChunk) and (data.text or data.scores):
            yield self._chunks.delta(Delta(content=data.text), scores=data.scores)

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """The end."""
        yield self._chunks.delta(Delta(), finish_reason)


class AudioScript:
    """A spoken reply: transcript and samples, in the order in which they come.

    `keep` gets the whole transcript, before the client is told until when it may refer to it.
    """

    def __init__(
        self, chunks: Chunks, audio_id: str, expires_at: int, keep: Callable[[str], None]
    ) -> None:
        self._chunks = chunks
        self._audio_id = audio_id
        self._expires_at = expires_at
        self._keep = keep
        self._transcribed: list[str] = []
        self._unsent = b""
        self._named = False

    def first(self) -> bytes:
        """The role, without a text."""
        return self._chunks.delta(Delta(role="assistant", content=None, refusal=None))

    def take(self, data: Any) -> Iterator[bytes]:
        """Transcript at once; samples in pieces that can be joined in base64."""
        if isinstance(data, TextChunk) and (data.text or data.scores):
            self._transcribed.append(data.text)
            yield self._transcript(data.text, data.scores)
        elif isinstance(data, AudioChunk):
            sound = self._unsent + pcm(data)
            cut = len(sound) - len(sound) % JOINABLE_BYTES
            self._unsent = sound[cut:]
            yield from self._sound(sound[:cut])

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """The last samples, how long the reply is kept, and the end."""
        yield from self._sound(self._unsent)
        if not self._named:
            yield self._transcript("")
        self._keep("".join(self._transcribed))
        yield self._chunks.audio(AudioDelta(expires_at=self._expires_at))
        yield self._chunks.delta(Delta(), finish_reason)

    def _transcript(self, text: str, scores: Sequence[TokenScore] = ()) -> bytes:
        if self._named:
            return self._chunks.audio(AudioDelta(transcript=text), scores)
        self._named = True
        return self._chunks.audio(AudioDelta(id=self._audio_id, transcript=text), scores)

    def _sound(self, samples: bytes) -> Iterator[bytes]:
        if samples:
            if not self._named:
                yield self._transcript("")
            yield self._chunks.sound(samples)


async def chat_frames(
    outputs: Outputs,
    scripts: Sequence[Script],
    tally: Tally,
    usage_frame: Callable[[], bytes] | None,
) -> AsyncGenerator[bytes]:
    """All frames of a reply. Raises the error of a request in the place of an end."""
    num_begun = 0
    async for output in outputs.of_group():
        for script in scripts[num_begun : output.index + 1]:
            yield script.first()
        num_begun = max(num_begun, output.index + 1)
        tally.note(output)
        script = scripts[output.index]
        for frame in script.take(output.data):
            yield frame
        if output.finished:
            for frame in script.last(tally.finish_reason(output.index)):
                yield frame
    if usage_frame is not None:
        yield usage_frame()
    yield DONE
