"""The code2wav stage of Qwen3-TTS: decodes the codec frames of many requests to 24 kHz audio.

A step serves the request whose client runs out of audio first. Other requests that have as many
frames join its call. While a client has little audio left, its request is decoded at once, as soon
as one frame is there. Later it gathers more frames for each call, which costs less in all, but for
no longer than half of the audio that the client has left. The audio of a request depends neither on
how its frames were cut into calls nor on the other requests.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import (
    OUTPUT_RATE_HZ,
    AudioChunk,
    AudioEnd,
    Code2WavParams,
    CodecChunk,
)
from stages.contract.stage import Emit
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import AutoDtype, enter_stream, pick_device, pick_dtype
from stages.models.qwen3_tts.code2wav.batch_decoder import CALL_FRAMES, BatchDecoder
from stages.models.qwen3_tts.code2wav.decoder import Decoder
from stages.models.qwen3_tts.code2wav.model_config import read_codec_config
from stages.models.qwen3_tts.code2wav.request import CodecRequest
from stages.runtime.playback_order import Playback
from stages.weights.safetensors import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stages.contract.messages import Chunk, StageParams
    from stages.contract.stage import Credit
    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig


class QwenCode2WavStage:
    """Implements `Stage`. Opened with `Code2WavParams`; takes `CodecChunk`s."""

    _decoder: Decoder
    _batch_decoder: BatchDecoder

    def __init__(
        self,
        config: QwenCode2WavConfig,
        clock: Callable[[], float] = time.monotonic,
        capture: Capture | None = None,
    ) -> None:
        self._config = config
        self._capture = capture
        self._playback = Playback(clock)
        self._requests: dict[str, CodecRequest] = {}

    @torch.inference_mode()
    def load(self) -> None:
        """Load the codec. Raises CheckpointError if it cannot be used."""
        config = self._config
        device = pick_device(config.device)
        enter_stream(device)
        model = read_codec_config(config.folder)
        dtype = pick_dtype(config.dtype, device, AutoDtype.CODEC_DECODER)
        self._decoder = Decoder(model, Weights(config.folder), device, dtype)
        if device.type == "cuda":
            self._capture = self._capture or CudaCapture(device)
        self._batch_decoder = BatchDecoder(self._decoder, self._capture)

    def warm(self) -> None:
        """Capture or run a call of each size."""
        self._batch_decoder.warm()

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request with an empty stream."""
        assert isinstance(params, Code2WavParams)
        self._requests[request_id] = CodecRequest(
            self._batch_decoder.new_stream(), self._decoder.config.hop
        )
        self._playback.open(request_id)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Queue frames. Raises RequestError for frames of another codec."""
        assert isinstance(chunk, CodecChunk)
        num_codes, expected = chunk.codes.shape[1], self._decoder.config.num_quantizers
        if num_codes != expected:
            message = f"the frames have {num_codes} codes each; this codec needs {expected}"
            raise RequestError(request_id, message)
        self._requests[request_id].feed(chunk, self._decoder.device)

    def end_input(self, request_id: str) -> None:
        """Note that no more frames will come."""
        self._requests[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """Whether fewer than 2 s of frames wait."""
        return self._requests[request_id].wants_frames

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and enough frames wait for a call or the input has ended."""
        request = self._requests[request_id]
        if credit.both <= 0:
            return False
        return request.ended or request.num_waiting >= self._min_frames(request_id)

    def _min_frames(self, request_id: str) -> int:
        """How many frames to gather before the request is decoded."""
        if self._requests[request_id].num_context:
            return 1
        frames_left = self._playback.left_s(request_id) * OUTPUT_RATE_HZ / self._decoder.config.hop
        return max([size for size in CALL_FRAMES if size <= frames_left / 2], default=1)

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Run one call of the decoder, and end the requests that are drained."""
        waiting = [request_id for request_id in credit if self._requests[request_id].num_waiting]
        for request_id in credit.keys() - waiting:
            yield from self._end(request_id)
        if waiting:
            yield from self._decode(waiting)

    def _decode(self, waiting: list[str]) -> Iterator[Emit]:
        """Run one call for the most urgent request and those that fit beside it."""
        chosen, num_frames = self._choose(self._playback.most_urgent_first(waiting))
        streams = [self._requests[request_id].stream for request_id in chosen]
        codes = [self._requests[request_id].take(num_frames) for request_id in chosen]
        rows = self._batch_decoder.decode(streams, codes)
        for request_id, row in zip(chosen, rows, strict=True):
            request = self._requests[request_id]
            if num_new := request.count_decoded(num_frames):
                samples = row[len(row) - num_new * request.hop :]
                self._playback.emit(request_id, len(samples) / OUTPUT_RATE_HZ)
                yield Emit(request_id, AudioChunk(samples, OUTPUT_RATE_HZ, request.captions()))
            yield from self._end(request_id)

    def _choose(self, urgent: list[str]) -> tuple[list[str], int]:
        """Which requests to decode in one call, and how many frames of each."""
        num_frames = self._batch_decoder.max_frames(self._requests[urgent[0]].num_waiting)
        enough = [rid for rid in urgent if self._requests[rid].num_waiting >= num_frames]
        return enough[: self._batch_decoder.max_streams(num_frames)], num_frames

    def _end(self, request_id: str) -> Iterator[Emit]:
        request = self._requests[request_id]
        if request.is_drained:
            end = AudioEnd(request.num_emitted * request.hop, audio_tokens=request.num_emitted)
            yield Emit(request_id, end=end)

    def close(self, request_id: str) -> None:
        """Drop the state of a request."""
        del self._requests[request_id]
        self._playback.close(request_id)
