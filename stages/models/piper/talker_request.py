"""One request in the talker: its text in pieces, and the phrase that is being spoken.

Pieces are spoken one after the other. Of a piece, frames are made slice by slice when they can be
handed on, so that a request holds text and one phrase's prior, never finished sound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.messages import Caption, LatentChunk, TextSpan
from stages.models.piper.vits import Latents, Scales, Vits, phrase_noise
from stages.text.markup import Cleaner, Verbatim
from stages.text.splitter import SENTENCE_PAUSE_S, Piece, Splitter

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams, VoiceFile
    from stages.models.piper.voice_file import PiperVoice
    from stages.text.reading import Phrase, Reader

# Of the largest slice: a frame of it costs a tenth less than of half of it. A decoder makes a chunk
# or two of each slice, so that what is handed on can be heard: the first slice of a phrase has its
# context besides.
_MIN_FRAMES = 16  # of all but the first
MAX_FRAMES = 256
CONTEXT_FRAMES = 11
MAX_WAITING_PIECES = 3


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Speaker:
    """A voice that is ready to speak. Keeps nothing of a request."""

    voice: PiperVoice
    model: Vits
    reader: Reader
    frame_s: float

    def scales(self, params: TalkerParams) -> Scales:
        """The request's scales where it has its own, else the voice's."""
        voice = self.voice
        return Scales(
            voice.noise_scale if params.noise_scale is None else params.noise_scale,
            voice.length_scale if params.length_scale is None else params.length_scale,
            voice.noise_w if params.noise_w is None else params.noise_w,
            params.speed,
        )


@dataclass(slots=True)
class _Spoken:
    """A phrase whose frames are being made, and the pause after it."""

    latents: Latents
    pause_s: float
    caption: Caption | None


@dataclass(slots=True)
class Speech:
    """The state of one request. `end` after the last `feed`."""

    speaker: Speaker
    file: VoiceFile
    params: TalkerParams
    ended: bool = False
    num_frames: int = 0
    _splitter: Splitter = field(init=False)
    _waiting: deque[Piece] = field(default_factory=deque)
    _phrases: deque[tuple[Phrase, float]] = field(default_factory=deque)
    _num_phrases: int = 0
    _slice_frames: int = 0  # of the last slice
    _spoken: _Spoken | None = None

    def __post_init__(self) -> None:
        params = self.params
        pause_s = params.sentence_silence_s
        self._splitter = Splitter(
            Cleaner(params.code_announcement) if params.clean else Verbatim(),
            SENTENCE_PAUSE_S if pause_s is None else pause_s,
        )

    @property
    def has_work(self) -> bool:
        """Whether something is there to be spoken."""
        return self._spoken is not None or bool(self._phrases or self._waiting)

    @property
    def wants_text(self) -> bool:
        """False while several pieces wait."""
        return len(self._waiting) < MAX_WAITING_PIECES

    def feed(self, text: str) -> None:
        """Take more text."""
        self._waiting += self._splitter.feed(text)

    def end(self) -> None:
        """No more text comes."""
        self._waiting += self._splitter.finish()
        self.ended = True

    def next_chunk(self, first_frames: int) -> LatentChunk | None:
        """The next slice of frames, of the phrase after where one is done; None if none is left.

        Encodes at most one phrase. `first_frames`: of the request's first slice.
        """
        while self._spoken is None:
            if self._phrases:
                self._spoken = self._encode(*self._phrases.popleft())
            elif self._waiting:
                self._phrases += self._read(self._waiting.popleft())
            else:
                return None
        return self._slice(self._spoken, first_frames)

    def _read(self, piece: Piece) -> list[tuple[Phrase, float]]:
        """The phrases of a piece and the pause after each."""
        phrases = self.speaker.reader.read(piece.spoken, words=self.params.captions)
        pauses_s = [0.0] * (len(phrases) - 1) + [piece.pause_s]
        return list(zip(phrases, pauses_s, strict=False))

    def _encode(self, phrase: Phrase, pause_s: float) -> _Spoken:
        number, self._num_phrases = self._num_phrases, self._num_phrases + 1
        noise = phrase_noise(self.params.seed, number)
        scales = self.speaker.scales(self.params)
        latents = self.speaker.model.encode(phrase.ids, scales, noise, self.params.speaker)
        caption = _caption(phrase, latents) if self.params.captions else None
        return _Spoken(latents, pause_s, caption)

    def _slice(self, spoken: _Spoken, first_frames: int) -> LatentChunk:
        last_size = self._slice_frames
        size = self._slice_frames = size_after(last_size) if last_size else first_frames
        first = spoken.latents.num_fed == 0
        if first:
            size += CONTEXT_FRAMES
        frames = self.speaker.model.flow(spoken.latents, size)
        last = spoken.latents.complete
        self.num_frames += len(frames)
        if last:
            self._spoken = None
        pause_s = spoken.pause_s if last else 0.0
        return LatentChunk(frames, first, last, pause_s, spoken.caption if first else None)


def size_after(num_frames: int) -> int:
    """Frames of the slice after one of `num_frames`."""
    return min(MAX_FRAMES, max(_MIN_FRAMES, 2 * num_frames))


def _caption(phrase: Phrase, latents: Latents) -> Caption:
    """When what a phrase stands for is heard, in its frames."""
    ends = [0, *latents.ends]
    words = (TextSpan(w.start, w.end, ends[w.first_id], ends[w.stop_id]) for w in phrase.words)
    return Caption(TextSpan(phrase.start, phrase.end, 0, latents.num_frames), tuple(words))
