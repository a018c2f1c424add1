"""One request in the talker of Qwen3-TTS: its text's stream, and how far its frames are.

It says what may be done next and knows nothing of tensors' contents. Position p of the talker's
sequence is the prompt's, then frame p - length's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stages.contract.messages import Caption, CodecChunk, TextSpan

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams, VoiceFile
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.prompt import Prompt
    from stages.models.qwen3_tts.talker.text import SpeechText

MAX_AHEAD = 256  # tokens of text that may wait to be read


@dataclass(slots=True, eq=False)
class Speech:
    """`row` is its place in the table while it has one. `eos` ends the text's stream."""

    request_id: str
    params: TalkerParams
    prompt: Prompt
    text: SpeechText
    eos: int
    pad: int
    voice: CopiedVoice | None = None
    file: VoiceFile | None = None
    row: int | None = None
    state: Any = None  # embeddings of the prompt, while it is read
    num_read: int = 0  # positions of the prompt
    num_frames: int = 0
    num_sent: int = 0  # tokens of the stream that are in the table
    _stream: list[int] = field(default_factory=list)
    _num_text: int = 0
    _text_ended: bool = False
    _held: Any = None

    def __post_init__(self) -> None:
        self._stream += self.prompt.leading

    def feed(self, text: str) -> None:
        """Take more text."""
        self._add(self.text.feed(text))

    def end(self) -> None:
        """No more text comes."""
        self._add(self.text.end())
        self._stream.append(self.eos)
        short = self.prompt.num_streamed - len(self._stream)
        self._stream += [self.pad] * short
        self._text_ended = True

    def _add(self, tokens: list[int]) -> None:
        self._stream += tokens
        self._num_text += len(tokens)

    @property
    def wants_text(self) -> bool:
        """False while much waits to be read."""
        return len(self._stream) - self.prompt.num_streamed - self.num_frames < MAX_AHEAD

    @property
    def is_silent(self) -> bool:
        """Whether the text is complete and nothing is in it."""
        return self._text_ended and not self._num_text

    @property
    def copies(self) -> bool:
        """Whether its voice is still being copied."""
        return self.voice is not None and not self.voice.is_copied

    @property
    def can_begin(self) -> bool:
        """Whether the voice is, and the text that is read with the prompt."""
        enough = self._num_text > 0 and len(self._stream) >= self.prompt.num_streamed
        return enough and not self.copies

    @property
    def reads(self) -> bool:
        """Whether the prompt is being read."""
        return self.row is not None and self.num_read < self.prompt.length

    @property
    def can_speak(self) -> bool:
        """Whether the next frame may be made: what is read with it is there."""
        if self.row is None or self.reads:
            return False
        known = len(self._stream) - self.prompt.num_streamed
        return self._text_ended or known > self.num_frames

    @property
    def position(self) -> int:
        """Where the next frame goes."""
        return self.prompt.length + self.num_frames

    def prompt_text(self) -> list[int]:
        """The text tokens of the whole prompt."""
        return [*self.prompt.text, *self._stream[: self.prompt.num_streamed]]

    def unsent(self) -> tuple[int, list[int]]:
        """The stream's tokens that the table has not got, and the frame the first is read with."""
        at = self.num_sent
        tokens = self._stream[self.prompt.num_streamed + at :]
        self.num_sent += len(tokens)
        return at, tokens

    def reference_chunk(self) -> CodecChunk | None:
        """The frames of a reference that the speech goes on from, to be sent before its own."""
        if self.voice is None or not self.prompt.num_reference_frames:
            return None
        return CodecChunk(self.voice.frames, audible=False)

    def frame_chunk(self, codes: Any) -> CodecChunk | None:
        """The next frame, [1, groups]; with captions one frame late, so that the last is known."""
        self.num_frames += 1
        if not self.params.captions:
            return CodecChunk(codes)
        held, self._held = self._held, codes
        return None if held is None else CodecChunk(held)

    def last_chunk(self) -> CodecChunk | None:
        """The frame that was kept back, with the caption of all."""
        if self._held is None:
            return None
        piece = TextSpan(self.text.start, self.text.end_at, 0, self.num_frames)
        return CodecChunk(self._held, caption=Caption(piece))
