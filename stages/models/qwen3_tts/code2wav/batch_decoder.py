"""Decodes the next frames of several streams in one call. On a GPU the call is a CUDA graph.

Calls have a few fixed sizes: a number of streams by a number of frames. One graph is captured for
each size, over memory that never moves. So the streams' states are copied in before a call and
copied back after it. On a CPU a single stream is decoded in place, and the sizes only keep a step
short.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from stages.kernels.cuda_graphs import sizes_up_to
from stages.kernels.device import on_device
from stages.models.qwen3_tts.code2wav.streaming_state import StreamingState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from torch import Tensor

    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.code2wav.decoder import Decoder

    Pcm = np.ndarray[Any, np.dtype[np.int16]]

CALL_FRAMES = (1, 2, 4, 8)  # how many frames of each stream a call may decode
MAX_STREAMS = 64
MAX_TOTAL_FRAMES = 256  # in one call, of all streams
MAX_TOTAL_FRAMES_CPU = 3  # in one call, of all streams: about 100 ms on one thread


@dataclass(slots=True)
class Stream:
    """One stream: its state `values` [size], and the number of frames it has decoded."""

    values: Tensor
    position: int = 0


class BatchDecoder:
    """Batched calls of one decoder. `capture` is None if calls run without graphs, as on a CPU."""

    def __init__(self, decoder: Decoder, capture: Capture | None) -> None:
        self._decoder = decoder
        self._capture = capture
        self._max_frames = MAX_TOTAL_FRAMES if capture else MAX_TOTAL_FRAMES_CPU
        num_streams = self.max_streams(CALL_FRAMES[0])
        self._sizes = sizes_up_to(num_streams)
        device = decoder.device
        self._state = decoder.new_state(num_streams)
        num_codes = num_streams * CALL_FRAMES[-1] * decoder.config.num_quantizers
        self._codes = torch.zeros(num_codes, dtype=torch.int64, device=device)
        self._graphs: dict[tuple[int, int], tuple[Callable[[], None], Tensor]] = {}

    @property
    def device(self) -> torch.device:
        """The device of the decoder."""
        return self._decoder.device

    @torch.inference_mode()
    def new_stream(self) -> Stream:
        """A stream at its beginning."""
        decoder = self._decoder
        return Stream(torch.zeros(decoder.state_size, device=decoder.device, dtype=decoder.dtype))

    def max_streams(self, num_frames: int) -> int:
        """How many streams one call may have, with `num_frames` each. 0 if that is too many."""
        return min(self._max_frames // num_frames, MAX_STREAMS)

    def max_frames(self, num_waiting: int) -> int:
        """How many frames to decode of a stream that has `num_waiting`, which is at least 1."""
        return max(size for size in CALL_FRAMES if size <= min(num_waiting, self._max_frames))

    @torch.inference_mode()
    def warm(self) -> None:
        """Capture a call of each size; without graphs, run it."""
        for num_frames in reversed(CALL_FRAMES):
            for num_streams in reversed(self._sizes):
                if num_streams <= self.max_streams(num_frames):
                    self._warm(num_streams, num_frames)

    def _warm(self, num_streams: int, num_frames: int) -> None:
        shape = (num_streams, num_frames * self._decoder.config.hop)
        samples = torch.empty(shape, dtype=torch.int16, device=self._decoder.device)
        work = partial(self._decode_buffers, num_streams, num_frames, samples)
        if self._capture is None:
            work()
        else:
            self._graphs[num_streams, num_frames] = (self._capture(work), samples)

    def _decode_buffers(self, num_streams: int, num_frames: int, samples: Tensor) -> None:
        """Decode the codes that are in the fixed buffers."""
        state = StreamingState(
            self._state.values[:num_streams], self._state.positions[:num_streams]
        )
        samples.copy_(self._decode(self._codes_view(num_streams, num_frames), state))

    def _codes_view(self, num_streams: int, num_frames: int) -> Tensor:
        num_codes = self._decoder.config.num_quantizers
        codes = self._codes[: num_streams * num_frames * num_codes]
        return codes.view(num_streams, num_frames, num_codes)

    def _decode(self, codes: Tensor, state: StreamingState) -> Tensor:
        """Decode to int16 [streams, samples]."""
        return self._decoder.decode(codes, state).mul_(32767).round_().to(torch.int16)

    @torch.inference_mode()
    def decode(self, streams: Sequence[Stream], codes: Sequence[Tensor]) -> Pcm:
        """Decode the next frames of each stream to int16 [streams, samples].

        `codes` has [num_frames, num_quantizers] for each stream. `num_frames` is one of
        `CALL_FRAMES`, the same for all. The streams are advanced past these frames.
        """
        num_frames = len(codes[0])
        if len(streams) == 1 and self._capture is None:
            samples = self._decode_in_place(streams[0], codes[0])
        else:
            samples = self._decode_together(streams, codes, num_frames)
        for stream in streams:
            stream.position += num_frames
        pcm: Pcm = samples.to("cpu", copy=True).numpy()  # the next replay overwrites them
        return pcm

    def _decode_in_place(self, stream: Stream, codes: Tensor) -> Tensor:
        positions = on_device([stream.position], self._decoder.device)
        return self._decode(codes[None], StreamingState(stream.values[None], positions))

    def _decode_together(
        self, streams: Sequence[Stream], codes: Sequence[Tensor], num_frames: int
    ) -> Tensor:
        count = len(streams)
        size = next(size for size in self._sizes if size >= count) if self._capture else count
        values = self._state.values[:count]
        torch.stack([stream.values for stream in streams], out=values)
        positions = [stream.position for stream in streams]
        self._state.positions[:count] = on_device(positions, self._decoder.device)
        torch.stack(list(codes), out=self._codes_view(count, num_frames))
        if self._capture is None:
            state = StreamingState(values, self._state.positions[:count])
            samples = self._decode(self._codes_view(count, num_frames), state)
        else:
            replay, samples = self._graphs[size, num_frames]
            replay()
        torch._foreach_copy_([stream.values for stream in streams], list(values.unbind()))
        return samples[:count]
