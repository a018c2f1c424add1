"""One request in code2wav: the waiting frames, and the stream of samples made of them.

Pieces and the pauses between them go through one resampler, from the first sample to the last. So
the cuts cannot be heard or measured. soxr's high quality holds back at most 42 ms of a chunk. Its
low quality holds back 1 ms, but attenuates 9 kHz by 3.5 dB and 9.5 kHz by 10 dB.
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

# Chunk sizes in frames; the end of a piece is padded to the next of them.
SIZES = (5, 16, 32, 48, 64, 96, 128)
MAX_WAITING_FRAMES = 128


@dataclass(frozen=True, slots=True, weakref_slot=True)
class VoiceDecoder:
    """The decoder of one voice and its sample rate. It holds no state of requests."""

    model: HifiGan
    rate_hz: int


@dataclass(slots=True)
class _Piece:
    """The frames of one piece that are still needed.

    The first `num_context` are decoded already, and serve as context of the next ones.
    """

    frames: torch.Tensor
    num_context: int = 0
    is_complete: bool = False
    pause_s: float = 0.0

    @property
    def num_waiting(self) -> int:
        """Frames that are not decoded."""
        return len(self.frames) - self.num_context

    def num_decodable(self, reach: int) -> int:
        """How many frames to decode now: the largest size that has its context, or the rest of the
        piece. Waiting for more frames could let the listener run out of sound."""
        if self.is_complete:
            return min(self.num_waiting, SIZES[-1])
        return max((size for size in SIZES if size + reach <= self.num_waiting), default=0)


@dataclass(slots=True)
class Code2WavRequest:
    """The state of one request. Call `end_input` after the last `feed`."""

    decoder: VoiceDecoder
    file: VoiceFile
    speaker: int = 0
    input_ended: bool = False
    num_samples: int = 0  # returned so far, at the output rate
    _num_fed: int = 0  # samples of all frames and pauses so far, at the voice's rate
    _captions: CaptionTrack = field(init=False)
    _pieces: deque[_Piece] = field(default_factory=deque)
    _resampler: soxr.ResampleStream = field(init=False)

    def __post_init__(self) -> None:
        rates = (self.decoder.rate_hz, OUTPUT_RATE_HZ)
        self._resampler = soxr.ResampleStream(*rates, 1, dtype="float32", quality="HQ")
        self._captions = CaptionTrack(OUTPUT_RATE_HZ / self.decoder.rate_hz)

    @property
    def has_work(self) -> bool:
        """Whether there are frames that can be decoded."""
        return self._num_decodable > 0

    @property
    def _num_decodable(self) -> int:
        if not self._pieces:
            return 0
        return self._pieces[0].num_decodable(self.decoder.model.reach)

    @property
    def is_drained(self) -> bool:
        """Whether all frames are decoded and no more will come."""
        return self.input_ended and not self._pieces

    @property
    def wants_frames(self) -> bool:
        """False if enough frames wait for the largest chunk. A talker that runs further ahead would
        take processor time from the decoders."""
        return sum(piece.num_waiting for piece in self._pieces) < MAX_WAITING_FRAMES

    def feed(self, chunk: LatentChunk) -> None:
        """Take the next frames of the current piece, or the first frames of a new one."""
        hop = self.decoder.model.hop
        if chunk.caption is not None:
            self._captions.add(chunk.caption, self._num_fed, hop)
        self._num_fed += len(chunk.frames) * hop + self._pause_samples(chunk.pause_s)
        if chunk.first:
            self._pieces.append(_Piece(chunk.frames))
        else:
            piece = self._pieces[-1]
            piece.frames = torch.cat([piece.frames, chunk.frames])
        self._pieces[-1].is_complete = chunk.last
        self._pieces[-1].pause_s = chunk.pause_s

    def end_input(self) -> None:
        """No more frames will come."""
        self.input_ended = True

    def next_samples(self) -> tuple[Pcm, tuple[Caption, ...]]:
        """Decode one chunk, if there is one: int16 [n] at `OUTPUT_RATE_HZ`, and its captions.

        The last chunk includes what the resampler held back. The result is empty if the resampler
        holds back the whole chunk.
        """
        decoded = self._decode(self._pieces[0]) if self.has_work else np.zeros(0, np.float32)
        samples = self._resampler.resample_chunk(decoded, last=self.is_drained)
        self.num_samples += len(samples)
        pcm: Pcm = np.rint(np.clip(samples * 32767, -32768, 32767)).astype(np.int16)
        return pcm, self._captions.until(self.num_samples) if len(pcm) else ()

    def _pause_samples(self, pause_s: float) -> int:
        return round(pause_s * self.decoder.rate_hz)

    def _decode(self, piece: _Piece) -> Samples:
        """The samples of the piece's next chunk; the last chunk includes the pause after it."""
        model, num_frames = self.decoder.model, self._num_decodable
        begin, end = piece.num_context, piece.num_context + num_frames
        size = next(size for size in SIZES if size >= num_frames)
        samples: Samples = model.decode(piece.frames, begin, end, size, self.speaker).numpy()
        piece.num_context = min(end, model.reach)
        piece.frames = piece.frames[end - piece.num_context :]
        if piece.is_complete and not piece.num_waiting:
            self._pieces.popleft()
            silence = np.zeros(self._pause_samples(piece.pause_s), np.float32)
            return np.concatenate([samples, silence])
        return samples
