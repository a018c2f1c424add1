"""The state of one request in code2wav: waiting frames, its decoder stream, and its captions."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from stages.models.piper.caption_track import CaptionTrack

if TYPE_CHECKING:
    from torch import Tensor

    from stages.contract.messages import Caption, CodecChunk
    from stages.models.qwen3_tts.code2wav.batch_decoder import Stream

MAX_WAITING_FRAMES = 25  # 2 s


@dataclass(slots=True)
class CodecRequest:
    """The state of one request. `hop` is the number of samples in a frame.

    Context frames come first. They are decoded for the state that they leave, and not emitted.
    """

    stream: Stream
    hop: int
    ended: bool = False
    num_emitted: int = 0  # frames that the client gets
    num_waiting: int = 0  # frames that are not decoded yet
    num_context: int = 0  # of the waiting frames, the first ones
    _chunks: deque[Tensor] = field(default_factory=deque)
    _captions: CaptionTrack = field(default_factory=lambda: CaptionTrack(1.0))

    @property
    def is_drained(self) -> bool:
        """Whether every frame is decoded and no more will come."""
        return self.ended and not self.num_waiting

    @property
    def wants_frames(self) -> bool:
        """False while `MAX_WAITING_FRAMES` wait (backpressure)."""
        return self.num_waiting < MAX_WAITING_FRAMES

    def feed(self, chunk: CodecChunk, device: torch.device) -> None:
        """Queue the frames of a chunk."""
        codes: Tensor = chunk.codes
        if codes.is_cuda:  # keep the talker's memory until this thread's CUDA stream has read it
            codes.record_stream(torch.cuda.current_stream(codes.device))
        codes = codes.to(device, torch.int64, non_blocking=True)
        self._chunks.append(codes)
        self.num_waiting += len(codes)
        if not chunk.audible:
            self.num_context += len(codes)
        if chunk.caption is not None:
            self._captions.add(chunk.caption, 0, self.hop)

    def take(self, num_frames: int) -> Tensor:
        """Remove and return the next codes, [num_frames, groups]. That many frames must wait."""
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

    def count_decoded(self, num_frames: int) -> int:
        """Count decoded frames. Returns how many of them, the last ones, are to be emitted."""
        num_context = min(num_frames, self.num_context)
        self.num_context -= num_context
        self.num_emitted += num_frames - num_context
        return num_frames - num_context

    def captions(self) -> tuple[Caption, ...]:
        """The captions that became complete since the last call."""
        return self._captions.until(self.num_emitted * self.hop)
