"""A choice of a chat completion as chunks: which, in which order.

The order is the one that the official clients' accumulators take: the role once and first, the
audio's id once, its expiry once and alone, the finish reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.chat.chunk import AudioDelta, Delta
from server.encoding.pcm import pcm
from server.operations.shared.captions import captions_json
from server.operations.shared.unspoken import UnspokenLetters
from stages.contract.messages import AudioChunk, TextChunk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from server.operations.chat.chunks import Chunks
    from stages.contract.messages import Caption, TokenScore

# Three bytes are four characters of base64, two bytes a sample: pieces of six need no padding, so
# that a client may join their base64 as it is.
JOINABLE_BYTES = 6


class TextScript:
    """A reply in text."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks

    def first(self) -> Iterator[bytes]:
        """The role, with an empty text."""
        yield self._chunks.delta(Delta(role="assistant", content="", refusal=None))

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
    `language` is the voice's; what it cannot speak is reported at the end.
    """

    def __init__(
        self,
        chunks: Chunks,
        audio_id: str,
        expires_at: int,
        keep: Callable[[str], None],
        language: str,
        *,
        captions: bool,
    ) -> None:
        self._chunks = chunks
        self._unspoken = UnspokenLetters(language)
        self._wants_captions = captions
        self._captions: list[Caption] = []
        self._audio_id = audio_id
        self._expires_at = expires_at
        self._keep = keep
        self._transcribed: list[str] = []
        self._unsent = b""
        self._named = False

    def first(self) -> Iterator[bytes]:
        """The role, without a text."""
        yield self._chunks.delta(Delta(role="assistant", content=None, refusal=None))

    def take(self, data: Any) -> Iterator[bytes]:
        """Transcript at once; samples in pieces that can be joined in base64."""
        if isinstance(data, TextChunk) and (data.text or data.scores):
            self._transcribed.append(data.text)
            self._unspoken.note(data.text)
            yield self._transcript(data.text, data.scores)
        elif isinstance(data, AudioChunk):
            self._captions += data.captions
            sound = self._unsent + pcm(data)
            cut = len(sound) - len(sound) % JOINABLE_BYTES
            self._unsent = sound[cut:]
            yield from self._sound(sound[:cut])

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """The last samples, how long the reply is kept, and the end."""
        yield from self._sound(self._unsent)
        if not self._named:
            yield self._transcript("")
        if (unspoken := self._unspoken.report) is not None:
            yield self._chunks.audio(AudioDelta(unspoken=unspoken))
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
            yield self._chunks.sound(samples, self._heard())

    def _heard(self) -> bytes:
        if not self._wants_captions:
            return b""
        captions, self._captions = self._captions, []
        return captions_json(captions)
