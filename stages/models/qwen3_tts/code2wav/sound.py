"""One request in code2wav: the frames that wait, and what was made of those before."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from stages.models.piper.caption_track import CaptionTrack

if TYPE_CHECKING:
    from torch import Tensor

    from stages.contract.messages import Caption, CodecChunk
    from stages.models.qwen3_tts.code2wav.batches import Stream

MAX_WAITING = 25  # frames, 2 s


@dataclass(slots=True)
class Sound:
    """The state of one request; `hop` is the samples of a frame."""

    stream: Stream
    hop: int
    ended: bool = False
    num_heard: int = 0  # frames
    num_waiting: int = 0
    _num_unheard: int = 0  # of those that wait, the first
    _chunks: deque[Tensor] = field(default_factory=deque)
    _captions: CaptionTrack = field(default_factory=lambda: CaptionTrack(1.0))

    @property
    def drained(self) -> bool:
        """Whether all that came is decoded and no more will come."""
        return self.ended and not self.num_waiting

    @property
    def wants_frames(self) -> bool:
        """False while about two seconds wait."""
        return self.num_waiting < MAX_WAITING

    @property
    def num_unheard(self) -> int:
        """How many of the waiting frames will not be heard; they come first."""
        return self._num_unheard

    def feed(self, chunk: CodecChunk, device: torch.device) -> None:
        """Take the next frames."""
        codes: Tensor = chunk.codes
        if codes.is_cuda:  # the talker's memory, in use until this thread's stream has read it
            codes.record_stream(torch.cuda.current_stream(codes.device))
        codes = codes.to(device, torch.int64, non_blocking=True)
        self._chunks.append(codes)
        self.num_waiting += len(codes)
        if not chunk.audible:
            self._num_unheard += len(codes)
        if chunk.caption is not None:
            self._captions.add(chunk.caption, 0, self.hop)

    def take(self, num_frames: int) -> Tensor:
        """The next codes, [num_frames, groups]; so many wait."""
        parts = []
        missing = num_frames
        while missing:
            chunk = self._chunks.popleft()
            if len(chunk) > missing:
                self._chunks.appendleft(chunk[missing:])
                chunk = chunk[:missing]
            parts.append(chunk)
            missing -= len(chunk)
        self.num_waiting -= num_frames
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def hear(self, num_frames: int) -> int:
        """Count frames that were decoded; how many of them, the last ones, are heard."""
        unheard = min(num_frames, self._num_unheard)
        self._num_unheard -= unheard
        self.num_heard += num_frames - unheard
        return num_frames - unheard

    def captions(self) -> tuple[Caption, ...]:
        """What is heard in the frames since the last call."""
        return self._captions.until(self.num_heard * self.hop)
