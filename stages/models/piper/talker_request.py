"""One request in the talker: its text in pieces, and the phrase that is being spoken.

Pieces are spoken one after the other. Frames are made slice by slice, when the next stage can take
them. So a request holds text and the prior of one phrase, and never finished frames.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.messages import Caption, LatentChunk, TextSpan
from stages.models.piper.settings import PiperSettings
from stages.models.piper.vits import Latents, Scales, Vits, phrase_noise
from stages.text.markup import Cleaner, Verbatim
from stages.text.splitter import SENTENCE_PAUSE_S, Piece, Splitter

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams, VoiceFile
    from stages.models.piper.voice_file import PiperVoice
    from stages.text.reading import Phrase, Reader

# Sizes of slices. A frame of the largest slice costs a tenth less than a frame of half of it. A
# decoder makes one or two chunks of each slice. The first slice of a phrase also has the context
# that the decoder needs, so that it can be decoded at once.
_MIN_FRAMES = 16  # of all slices but the first of a request
MAX_FRAMES = 256
CONTEXT_FRAMES = 11
MAX_WAITING_PIECES = 3


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Speaker:
    """A loaded voice. It holds no state of requests. `frame_s` is the duration of a frame."""

    voice: PiperVoice
    model: Vits
    reader: Reader
    frame_s: float

    def scales(self, params: TalkerParams) -> Scales:
        """The scales that the request sets, and the voice's own for the others."""
        voice, chosen = self.voice, params.settings or PiperSettings()
        return Scales(
            voice.noise_scale if chosen.noise_scale is None else chosen.noise_scale,
            voice.length_scale if chosen.length_scale is None else chosen.length_scale,
            voice.noise_w if chosen.noise_w is None else chosen.noise_w,
            chosen.speed,
        )


@dataclass(slots=True)
class _CurrentPhrase:
    """The phrase whose frames are being made, and the pause after it."""

    latents: Latents
    pause_s: float
    caption: Caption | None


@dataclass(slots=True)
class TalkerRequest:
    """The state of one request. Call `end_input` after the last `feed`."""

    speaker: Speaker
    file: VoiceFile
    params: TalkerParams
    input_ended: bool = False
    num_frames: int = 0  # made so far
    _splitter: Splitter = field(init=False)
    _pieces: deque[Piece] = field(default_factory=deque)
    _phrases: deque[tuple[Phrase, float]] = field(default_factory=deque)
    _num_phrases: int = 0
    _last_slice: int = 0  # frames
    _current: _CurrentPhrase | None = None

    def __post_init__(self) -> None:
        params = self.params
        pause_s = (params.settings or PiperSettings()).sentence_silence
        self._splitter = Splitter(
            Cleaner(params.code_announcement) if params.clean else Verbatim(),
            SENTENCE_PAUSE_S if pause_s is None else pause_s,
        )

    @property
    def has_work(self) -> bool:
        """Whether there is something to speak."""
        return self._current is not None or bool(self._phrases or self._pieces)

    @property
    def wants_text(self) -> bool:
        """False while several pieces wait."""
        return len(self._pieces) < MAX_WAITING_PIECES

    def feed(self, text: str) -> None:
        """Take more text."""
        self._pieces += self._splitter.feed(text)

    def end_input(self) -> None:
        """No more text will come."""
        self._pieces += self._splitter.finish()
        self.input_ended = True

    def next_chunk(self, first_frames: int) -> LatentChunk | None:
        """The next slice of frames; None if there is nothing to speak.

        Goes on with the next phrase if one is done. Encodes at most one phrase. `first_frames` is
        the size of the request's first slice.
        """
        while self._current is None:
            if self._phrases:
                self._current = self._encode(*self._phrases.popleft())
            elif self._pieces:
                self._phrases += self._read(self._pieces.popleft())
            else:
                return None
        return self._slice(self._current, first_frames)

    def _read(self, piece: Piece) -> list[tuple[Phrase, float]]:
        """The phrases of a piece and the pause after each."""
        phrases = self.speaker.reader.read(piece.spoken, words=self.params.captions)
        pauses_s = [0.0] * (len(phrases) - 1) + [piece.pause_s]
        return list(zip(phrases, pauses_s, strict=False))

    def _encode(self, phrase: Phrase, pause_s: float) -> _CurrentPhrase:
        number, self._num_phrases = self._num_phrases, self._num_phrases + 1
        noise = phrase_noise(self.params.seed, number)
        scales = self.speaker.scales(self.params)
        latents = self.speaker.model.encode(phrase.ids, scales, noise, self.params.speaker)
        caption = _caption(phrase, latents) if self.params.captions else None
        return _CurrentPhrase(latents, pause_s, caption)

    def _slice(self, phrase: _CurrentPhrase, first_frames: int) -> LatentChunk:
        last_slice = self._last_slice
        size = self._last_slice = size_after(last_slice) if last_slice else first_frames
        first = phrase.latents.num_fed == 0
        if first:
            size += CONTEXT_FRAMES
        frames = self.speaker.model.flow(phrase.latents, size)
        last = phrase.latents.is_complete
        self.num_frames += len(frames)
        if last:
            self._current = None
        pause_s = phrase.pause_s if last else 0.0
        return LatentChunk(frames, first, last, pause_s, phrase.caption if first else None)


def size_after(num_frames: int) -> int:
    """How many frames the slice after one of `num_frames` has."""
    return min(MAX_FRAMES, max(_MIN_FRAMES, 2 * num_frames))


def _caption(phrase: Phrase, latents: Latents) -> Caption:
    """The text of a phrase and of its words, timed in frames of the phrase."""
    ends = [0, *latents.ends]
    words = (TextSpan(w.start, w.end, ends[w.first_id], ends[w.stop_id]) for w in phrase.words)
    return Caption(TextSpan(phrase.start, phrase.end, 0, latents.num_frames), tuple(words))
