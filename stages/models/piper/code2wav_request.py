"""One request in code2wav: the frames that wait, and the one stream of samples that they become.

Pieces and the silences between them are joined and go through one resampler from the first sample
to the last, so that the cuts cannot be heard or measured. soxr's high quality holds back at most
42 ms of a chunk; its low one, 1 ms, but takes 3.5 dB at 9 kHz and 10 at 9.5.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import soxr
import torch

from stages.contract.messages import OUTPUT_RATE_HZ
from stages.models.piper.caption_track import CaptionTrack

if TYPE_CHECKING:
    from stages.contract.messages import Caption, LatentChunk, VoiceFile
    from stages.models.piper.hifigan import HifiGan

    Pcm = np.ndarray[Any, np.dtype[np.int16]]
    Samples = np.ndarray[Any, np.dtype[np.float32]]

SIZES = (5, 16, 32, 48, 64, 96, 128)  # computed shapes; the end of a piece takes the next larger
MAX_WAITING_FRAMES = 128


@dataclass(frozen=True, slots=True, weakref_slot=True)
class VoiceDecoder:
    """The decoder of one voice, and the rate of what it gives. Keeps nothing of a request."""

    model: HifiGan
    rate_hz: int


@dataclass(slots=True)
class _Piece:
    """The frames of one piece that are still read; the first `left` of them are decoded."""

    frames: torch.Tensor
    left: int = 0
    complete: bool = False
    pause_s: float = 0.0

    @property
    def waiting(self) -> int:
        """Frames that are not decoded."""
        return len(self.frames) - self.left

    def decodable(self, reach: int) -> int:
        """How many frames to decode now: the largest shape that has its context, or the rest of
        the piece. To wait for more would let a listener run dry in front of frames."""
        if self.complete:
            return min(self.waiting, SIZES[-1])
        return max((size for size in SIZES if size + reach <= self.waiting), default=0)


@dataclass(slots=True)
class Sound:
    """The state of one request."""

    decoder: VoiceDecoder
    file: VoiceFile
    speaker: int = 0
    ended: bool = False
    num_samples: int = 0
    _num_coming: int = 0  # samples of all pieces so far and the pauses after them, as decoded
    _captions: CaptionTrack = field(init=False)
    _pieces: deque[_Piece] = field(default_factory=deque)
    _resampler: soxr.ResampleStream = field(init=False)

    def __post_init__(self) -> None:
        rates = (self.decoder.rate_hz, OUTPUT_RATE_HZ)
        self._resampler = soxr.ResampleStream(*rates, 1, dtype="float32", quality="HQ")
        self._captions = CaptionTrack(OUTPUT_RATE_HZ / self.decoder.rate_hz)

    @property
    def has_work(self) -> bool:
        """Whether frames are there that can be decoded."""
        return self._num_decodable > 0

    @property
    def _num_decodable(self) -> int:
        if not self._pieces:
            return 0
        return self._pieces[0].decodable(self.decoder.model.reach)

    @property
    def drained(self) -> bool:
        """Whether all that came is decoded and no more will come."""
        return self.ended and not self._pieces

    @property
    def wants_frames(self) -> bool:
        """False while the largest chunk can be decoded: a talker that runs further ahead takes
        the time of those who decode."""
        return sum(piece.waiting for piece in self._pieces) < MAX_WAITING_FRAMES

    def feed(self, chunk: LatentChunk) -> None:
        """Take the next frames of the piece, or the first of another."""
        hop = self.decoder.model.hop
        if chunk.caption is not None:
            self._captions.add(chunk.caption, self._num_coming, hop)
        self._num_coming += len(chunk.frames) * hop + self._pause_samples(chunk.pause_s)
        if chunk.first:
            self._pieces.append(_Piece(chunk.frames))
        else:
            piece = self._pieces[-1]
            piece.frames = torch.cat([piece.frames, chunk.frames])
        self._pieces[-1].complete = chunk.last
        self._pieces[-1].pause_s = chunk.pause_s

    def end(self) -> None:
        """No more frames come."""
        self.ended = True

    def next_samples(self) -> tuple[Pcm, tuple[Caption, ...]]:
        """Decode one chunk, if there is one: int16 [n] at `OUTPUT_RATE_HZ`, and its captions.

        The last chunk brings the resampler's tail. Empty where the resampler keeps everything.
        """
        decoded = self._decode(self._pieces[0]) if self.has_work else np.zeros(0, np.float32)
        samples = self._resampler.resample_chunk(decoded, last=self.drained)
        self.num_samples += len(samples)
        pcm: Pcm = np.rint(np.clip(samples * 32767, -32768, 32767)).astype(np.int16)
        return pcm, self._captions.until(self.num_samples) if len(pcm) else ()

    def _pause_samples(self, pause_s: float) -> int:
        return round(pause_s * self.decoder.rate_hz)

    def _decode(self, piece: _Piece) -> Samples:
        """The next chunk of a piece, with the silence after it where it is the last."""
        model, num_frames = self.decoder.model, self._num_decodable
        begin, end = piece.left, piece.left + num_frames
        size = next(size for size in SIZES if size >= num_frames)
        samples: Samples = model.decode(piece.frames, begin, end, size, self.speaker).numpy()
        piece.left = min(end, model.reach)
        piece.frames = piece.frames[end - piece.left :]
        if piece.complete and len(piece.frames) == piece.left:
            self._pieces.popleft()
            silence = np.zeros(self._pause_samples(piece.pause_s), np.float32)
            return np.concatenate([samples, silence])
        return samples
