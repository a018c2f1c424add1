"""A chat reply as server-sent events: which chunks are sent, and in which order.

The order suits the official clients, which accumulate chunks. The role comes once and first, the
audio id once, its expiry once and alone, and the finish reason last.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from openapi.chat.chunk import AudioDelta, Delta
from server.encoding.pcm import pcm
from server.operations.chat.chunks import ChunkWriter, usage_chunk
from server.operations.shared.captions import captions_json
from server.operations.shared.choice_events import choice_events
from server.operations.shared.unspoken_letters import UnspokenLetters
from server.operations.shared.usage import UsageCounter
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from orchestrator import OrchOutput
    from server.operations.chat.plan import ChatPlan
    from server.operations.chat.reply_ids import ReplyIds
    from server.operations.shared.choice_events import ChoiceEvents
    from server.serving.outputs import Outputs
    from stages.contract.messages import Caption, TokenScore

# A sample is 2 bytes, and 3 bytes are 4 characters of base64. Parts of 6 bytes need no padding, so
# clients may join the base64 of all chunks.
JOINABLE_BYTES = 6


def chat_events(
    plan: ChatPlan, ids: ReplyIds, store: Callable[[int, str], None], outputs: Outputs
) -> AsyncGenerator[bytes]:
    """The chunks of all choices, then the usage if requested, then `[DONE]`.

    `store` is called with the index and the transcript of each spoken choice.
    """
    num_choices = len(plan.requests)
    choices = [_choice_events(plan, ids, store, index) for index in range(num_choices)]
    usage = UsageCounter(num_choices, num_per_prompt=num_choices)

    def usage_event() -> bytes:
        return usage_chunk(ids, usage.usage)

    return choice_events(outputs, choices, usage, usage_event if plan.include_usage else None)


def _choice_events(
    plan: ChatPlan, ids: ReplyIds, store: Callable[[int, str], None], index: int
) -> ChoiceEvents:
    chunks = ChunkWriter(ids, index, include_usage=plan.include_usage)
    if plan.audio_format is None:
        return TextChoiceEvents(chunks)
    return AudioChoiceEvents(
        chunks,
        ids.audio_ids[index],
        ids.expires_at,
        partial(store, index),
        plan.language,
        captions=plan.captions,
    )


class TextChoiceEvents:
    """The chunks of a choice in text."""

    def __init__(self, chunks: ChunkWriter) -> None:
        self._chunks = chunks

    def start(self) -> Iterator[bytes]:
        """The role, with an empty text."""
        yield self._chunks.delta(Delta(role="assistant", content="", refusal=None))

    def feed(self, output: OrchOutput) -> Iterator[bytes]:
        """The text of one output."""
        data = output.data
        if output.role == Role.THINKER and not output.is_end and (data.text or data.scores):
            yield self._chunks.delta(Delta(content=data.text), scores=data.scores)

    def finish(self, finish_reason: str) -> Iterator[bytes]:
        """The finish reason."""
        yield self._chunks.delta(Delta(), finish_reason)


class AudioChoiceEvents:
    """The chunks of a spoken choice: transcript and samples, in the order of the outputs.

    `store` is called with the whole transcript before `expires_at` is sent. `language` is that of
    the voice; letters that it cannot speak are reported at the end.
    """

    def __init__(
        self,
        chunks: ChunkWriter,
        audio_id: str,
        expires_at: int,
        store: Callable[[str], None],
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
        self._store = store
        self._transcript: list[str] = []
        self._unsent = b""
        self._id_sent = False

    def start(self) -> Iterator[bytes]:
        """The role, without a text."""
        yield self._chunks.delta(Delta(role="assistant", content=None, refusal=None))

    def feed(self, output: OrchOutput) -> Iterator[bytes]:
        """The transcript at once; samples in parts whose base64 can be joined."""
        data = output.data
        if output.is_end:
            return
        if output.role == Role.CODE2WAV:
            self._captions += data.captions
            samples = self._unsent + pcm(data)
            cut = len(samples) - len(samples) % JOINABLE_BYTES
            self._unsent = samples[cut:]
            yield from self._sample_chunks(samples[:cut])
        elif output.role == Role.THINKER and (data.text or data.scores):
            self._transcript.append(data.text)
            self._unspoken.add(data.text)
            yield self._transcript_chunk(data.text, data.scores)

    def finish(self, finish_reason: str) -> Iterator[bytes]:
        """The last samples, the unspoken letters, the expiry, and the finish reason."""
        yield from self._sample_chunks(self._unsent)
        if not self._id_sent:
            yield self._transcript_chunk("")
        if (unspoken := self._unspoken.report) is not None:
            yield self._chunks.audio_delta(AudioDelta(unspoken=unspoken))
        self._store("".join(self._transcript))
        yield self._chunks.audio_delta(AudioDelta(expires_at=self._expires_at))
        yield self._chunks.delta(Delta(), finish_reason)

    def _transcript_chunk(self, text: str, scores: Sequence[TokenScore] = ()) -> bytes:
        if self._id_sent:
            return self._chunks.audio_delta(AudioDelta(transcript=text), scores)
        self._id_sent = True
        return self._chunks.audio_delta(AudioDelta(id=self._audio_id, transcript=text), scores)

    def _sample_chunks(self, samples: bytes) -> Iterator[bytes]:
        if samples:
            if not self._id_sent:
                yield self._transcript_chunk("")
            yield self._chunks.samples(samples, self._take_captions())

    def _take_captions(self) -> bytes:
        if not self._wants_captions:
            return b""
        captions, self._captions = self._captions, []
        return captions_json(captions)
