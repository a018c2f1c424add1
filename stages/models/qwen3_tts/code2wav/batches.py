"""Decodes the next frames of several streams in one call; on a GPU, from a CUDA graph.

Calls have a few sizes: so many streams by so many frames. A graph is captured for each, over memory
that never moves: what the streams keep is brought in before and taken back after. On a CPU one
stream is decoded where its numbers lie, and the sizes only keep a step short.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from stages.kernels.cuda_graphs import sizes_up_to
from stages.kernels.device import on_device
from stages.kernels.private_ops import find_copy_each
from stages.models.qwen3_tts.code2wav.past import Past

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from torch import Tensor

    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.code2wav.decoder import Decoder

    Pcm = np.ndarray[Any, np.dtype[np.int16]]

FRAMES = (1, 2, 4, 8)  # of a call
MAX_STREAMS = 64
MAX_FRAMES = 256  # of all streams of a call
MAX_FRAMES_CPU = 3  # of all streams of a call: a step of about 100 ms, on one thread


@dataclass(slots=True)
class Stream:
    """What one stream keeps: `numbers` [size], and how many frames it has had."""

    numbers: Tensor
    position: int = 0


class Batches:
    """The calls of one decoder. `capture` is None where there are no graphs."""

    def __init__(self, decoder: Decoder, capture: Capture | None) -> None:
        self._decoder = decoder
        self._capture = capture
        self._max_frames = MAX_FRAMES if capture else MAX_FRAMES_CPU
        num_streams = self.max_streams(FRAMES[0])
        self._sizes = sizes_up_to(num_streams)
        device = decoder.device
        self._past = decoder.new_past(num_streams)
        num_codes = num_streams * FRAMES[-1] * decoder.config.num_quantizers
        self._codes = torch.zeros(num_codes, dtype=torch.int64, device=device)
        self._graphs: dict[tuple[int, int], tuple[Callable[[], None], Tensor]] = {}
        self._copy_each = find_copy_each()

    @property
    def device(self) -> torch.device:
        """Where codes are read."""
        return self._decoder.device

    @torch.inference_mode()
    def new_stream(self) -> Stream:
        """A stream that has had nothing."""
        decoder = self._decoder
        return Stream(torch.zeros(decoder.past_size, device=decoder.device, dtype=decoder.dtype))

    def max_streams(self, num_frames: int) -> int:
        """How many streams a call for so many frames of each may have; 0 for too many."""
        return min(self._max_frames // num_frames, MAX_STREAMS)

    def max_frames(self, waiting: int) -> int:
        """How many frames to decode of a stream that has `waiting`, at least 1."""
        return max(size for size in FRAMES if size <= min(waiting, self._max_frames))

    @torch.inference_mode()
    def warm(self) -> None:
        """Run, or capture, a call of each size."""
        for num_frames in reversed(FRAMES):
            for num_streams in reversed(self._sizes):
                if num_streams <= self.max_streams(num_frames):
                    self._warm(num_streams, num_frames)

    def _warm(self, num_streams: int, num_frames: int) -> None:
        shape = (num_streams, num_frames * self._decoder.config.hop)
        samples = torch.empty(shape, dtype=torch.int16, device=self._decoder.device)
        work = partial(self._work, num_streams, num_frames, samples)
        if self._capture is None:
            work()
        else:
            self._graphs[num_streams, num_frames] = (self._capture(work), samples)

    def _work(self, num_streams: int, num_frames: int, samples: Tensor) -> None:
        """Decode what lies in the fixed memory."""
        past = Past(self._past.numbers[:num_streams], self._past.positions[:num_streams])
        samples.copy_(self._decode(self._codes_of(num_streams, num_frames), past))

    def _codes_of(self, num_streams: int, num_frames: int) -> Tensor:
        num_codes = self._decoder.config.num_quantizers
        codes = self._codes[: num_streams * num_frames * num_codes]
        return codes.view(num_streams, num_frames, num_codes)

    def _decode(self, codes: Tensor, past: Past) -> Tensor:
        """int16 [streams, samples]"""
        return self._decoder.decode(codes, past).mul_(32767).round_().to(torch.int16)

    @torch.inference_mode()
    def decode(self, streams: Sequence[Stream], codes: Sequence[Tensor]) -> Pcm:
        """The next `num_frames` of each, a size of `FRAMES`, to int16 [streams, samples].

        `codes` are those of each, [num_frames, num_quantizers]; streams go on to their end.
        """
        num_frames = len(codes[0])
        if len(streams) == 1 and self._capture is None:
            samples = self._decode_in_place(streams[0], codes[0])
        else:
            samples = self._decode_together(streams, codes, num_frames)
        for stream in streams:
            stream.position += num_frames
        pcm: Pcm = samples.to("cpu", copy=True).numpy()  # a graph will write there again
        return pcm

    def _decode_in_place(self, stream: Stream, codes: Tensor) -> Tensor:
        positions = on_device([stream.position], self._decoder.device)
        return self._decode(codes[None], Past(stream.numbers[None], positions))

    def _decode_together(
        self, streams: Sequence[Stream], codes: Sequence[Tensor], num_frames: int
    ) -> Tensor:
        count = len(streams)
        size = next(size for size in self._sizes if size >= count) if self._capture else count
        numbers = self._past.numbers[:count]
        torch.stack([stream.numbers for stream in streams], out=numbers)
        positions = [stream.position for stream in streams]
        self._past.positions[:count] = on_device(positions, self._decoder.device)
        torch.stack(list(codes), out=self._codes_of(count, num_frames))
        if self._capture is None:
            past = Past(numbers, self._past.positions[:count])
            samples = self._decode(self._codes_of(count, num_frames), past)
        else:
            replay, samples = self._graphs[size, num_frames]
            replay()
        self._copy_each([stream.numbers for stream in streams], list(numbers.unbind()))
        return samples[:count]
