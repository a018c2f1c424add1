"""The state of one request in the talker of Qwen3-TTS: its text tokens and its progress.

It decides what the stage may do next with the request, and does not look into tensors. The talker's
sequence is the prompt, then one position per frame: frame n is at position `prompt.length + n`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.contract.messages import Caption, CodecChunk, TextSpan

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams, VoiceFile
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.prompt import Prompt
    from stages.models.qwen3_tts.talker.streaming_tokenizer import StreamingTokenizer

MAX_WAITING_TOKENS = 256  # text tokens that may wait to be read


@dataclass(slots=True, eq=False)
class SpeechSequence:
    """One request. `row` is its row in the `DecodeBatch` while it has one.

    The text stream is the list of text tokens: first those that are part of the prompt, then one
    for each frame. `eos` ends it; `pad` fills it up if it is shorter than the prompt needs.
    """

    request_id: str
    params: TalkerParams
    prompt: Prompt
    tokenizer: StreamingTokenizer
    eos: int
    pad: int
    voice: CopiedVoice | None = None
    file: VoiceFile | None = None
    row: int | None = None
    prompt_embeddings: Any = None  # [prompt.length, hidden], during the prefill
    num_prefilled: int = 0  # positions of the prompt
    num_frames: int = 0
    num_sent: int = 0  # tokens of the text stream that the batch has
    _text_stream: list[int] = field(default_factory=list)
    _num_text_tokens: int = 0  # without those of a reference's transcript
    _text_ended: bool = False
    _held_frame: Any = None  # [1, groups]; with captions

    def __post_init__(self) -> None:
        self._text_stream += self.prompt.transcript_tokens

    def feed(self, text: str) -> None:
        """Add text."""
        self._add(self.tokenizer.feed(text))

    def end(self) -> None:
        """Note that the text is complete."""
        self._add(self.tokenizer.end())
        self._text_stream.append(self.eos)
        num_missing = self.prompt.num_stream_tokens - len(self._text_stream)
        self._text_stream += [self.pad] * num_missing
        self._text_ended = True

    def _add(self, tokens: list[int]) -> None:
        self._text_stream += tokens
        self._num_text_tokens += len(tokens)

    @property
    def wants_text(self) -> bool:
        """False while `MAX_WAITING_TOKENS` wait to be read (backpressure)."""
        num_read = self.prompt.num_stream_tokens + self.num_frames
        return len(self._text_stream) - num_read < MAX_WAITING_TOKENS

    @property
    def is_empty(self) -> bool:
        """Whether the text is complete and has no tokens."""
        return self._text_ended and not self._num_text_tokens

    @property
    def is_copying_voice(self) -> bool:
        """Whether the request waits for its voice to be copied."""
        return self.voice is not None and not self.voice.is_copied

    @property
    def can_prefill(self) -> bool:
        """Whether the voice and all text tokens of the prompt are there."""
        num_needed = self.prompt.num_stream_tokens
        has_text = self._num_text_tokens > 0 and len(self._text_stream) >= num_needed
        return has_text and not self.is_copying_voice

    @property
    def is_prefilling(self) -> bool:
        """Whether a part of the prompt is still to be read."""
        return self.row is not None and self.num_prefilled < self.prompt.length

    @property
    def can_decode(self) -> bool:
        """Whether the next frame may be made: the text token that is read with it is there."""
        if self.row is None or self.is_prefilling:
            return False
        num_frames_with_text = len(self._text_stream) - self.prompt.num_stream_tokens
        return self._text_ended or num_frames_with_text > self.num_frames

    @property
    def position(self) -> int:
        """The position of the next frame."""
        return self.prompt.length + self.num_frames

    def prompt_text(self) -> list[int]:
        """The text tokens of the whole prompt."""
        return [*self.prompt.text, *self._text_stream[: self.prompt.num_stream_tokens]]

    def take_unsent(self) -> tuple[int, list[int]]:
        """The stream tokens that the batch does not have, after the number of their first frame."""
        frame = self.num_sent
        tokens = self._text_stream[self.prompt.num_stream_tokens + frame :]
        self.num_sent += len(tokens)
        return frame, tokens

    def reference_chunk(self) -> CodecChunk | None:
        """The frames of the reference recording, which code2wav needs as left context."""
        if self.voice is None or not self.prompt.num_reference_frames:
            return None
        return CodecChunk(self.voice.frames, audible=False)

    def frame_chunk(self, codes: Any) -> CodecChunk | None:
        """Count the next frame, [1, groups], and return the chunk to emit.

        With captions the chunk is one frame late, because the last frame carries the caption.
        """
        self.num_frames += 1
        if not self.params.captions:
            return CodecChunk(codes)
        held, self._held_frame = self._held_frame, codes
        return None if held is None else CodecChunk(held)

    def last_chunk(self) -> CodecChunk | None:
        """The frame that was held back, with one caption for the whole text."""
        if self._held_frame is None:
            return None
        span = TextSpan(self.tokenizer.start, self.tokenizer.end_at, 0, self.num_frames)
        return CodecChunk(self._held_frame, caption=Caption(span))
