"""One request in the talker: its text in pieces, and the phrase that is being spoken.

Pieces are spoken one after the other. Of a piece, frames are made slice by slice when they can be
handed on, so that a request holds text and one phrase's prior, never finished sound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.messages import LatentChunk
from stages.talker.text.phoneme_ids import phoneme_ids
from stages.talker.text.phonemizer import Phonemizer, phonemes
from stages.talker.text.splitter import Piece, Splitter
from stages.talker.vits import Latents, Scales, Vits, phrase_noise

if TYPE_CHECKING:
    from stages.messages import TalkerParams
    from stages.talker.voice import VoiceFile

# Of a request's first slices; the last is for all that follow. A decoder with 11 frames of context
# makes a first chunk of 16 from the first.
SLICE_FRAMES = (27, 64, 128)
MAX_WAITING_PIECES = 3


@dataclass(frozen=True, slots=True)
class Speaker:
    """A voice that is ready to speak."""

    voice: VoiceFile
    model: Vits
    phonemizer: Phonemizer
    frame_s: float

    def scales(self, params: TalkerParams) -> Scales:
        """The request's scales where it has its own, else the voice's."""
        voice = self.voice
        noise = voice.noise_scale if params.noise_scale is None else params.noise_scale
        noise_w = voice.noise_w if params.noise_w is None else params.noise_w
        return Scales(noise, voice.length_scale, noise_w, params.speed)

    def ids(self, text: str) -> list[list[int]]:
        """Phoneme ids of a piece: of all of it, or of its parts where it takes long to say."""
        sounds = phonemes(text, self.phonemizer)
        return [ids for part in sounds if (ids := phoneme_ids(part, self.voice.id_map))]


@dataclass(frozen=True, slots=True)
class _Phrase:
    """What is encoded at once: a piece, or a part of one."""

    ids: list[int]
    pause_s: float


@dataclass(slots=True)
class _Spoken:
    """The phrase whose frames are being handed on: those before `begin` are."""

    latents: Latents
    pause_s: float
    begin: int = 0


@dataclass(slots=True)
class Speech:
    """The state of one request."""

    speaker: Speaker
    params: TalkerParams
    ended: bool = False
    num_frames: int = 0
    _splitter: Splitter = field(default_factory=Splitter)
    _waiting: deque[Piece] = field(default_factory=deque)
    _phrases: deque[_Phrase] = field(default_factory=deque)
    _num_phrases: int = 0
    _num_slices: int = 0
    _spoken: _Spoken | None = None

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
        self._waiting += self._splitter.end()
        self.ended = True

    def next_chunk(self) -> LatentChunk | None:
        """The next slice of frames, of the phrase after where one is done; None if none is left.

        Encodes at most one phrase.
        """
        while self._spoken is None:
            if self._phrases:
                self._spoken = self._encode(self._phrases.popleft())
            elif self._waiting:
                self._phrases += self._read(self._waiting.popleft())
            else:
                return None
        return self._slice(self._spoken)

    def _read(self, piece: Piece) -> list[_Phrase]:
        parts = self.speaker.ids(piece.text)
        pauses_s = [0.0] * (len(parts) - 1) + [piece.pause_s]
        return list(map(_Phrase, parts, pauses_s))

    def _encode(self, phrase: _Phrase) -> _Spoken:
        number, self._num_phrases = self._num_phrases, self._num_phrases + 1
        noise = phrase_noise(self.params.seed, number)
        scales = self.speaker.scales(self.params)
        return _Spoken(self.speaker.model.encode(phrase.ids, scales, noise), phrase.pause_s)

    def _slice(self, spoken: _Spoken) -> LatentChunk:
        size = SLICE_FRAMES[min(self._num_slices, len(SLICE_FRAMES) - 1)]
        begin, end = spoken.begin, min(spoken.begin + size, spoken.latents.num_frames)
        last = end == spoken.latents.num_frames
        frames = self.speaker.model.flow(spoken.latents, begin, end)
        spoken.begin = end
        self._num_slices += 1
        self.num_frames += end - begin
        if last:
            self._spoken = None
        return LatentChunk(frames, begin == 0, last, spoken.pause_s if last else 0.0)
