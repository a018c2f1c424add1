"""code2wav of Qwen3-TTS: codec frames of many requests in, 24 kHz sound out, each frame once.

A step decodes the stream whose listener runs dry first, and with it, in one call, those that have
as many frames. A stream is decoded at once while its listener has little left, first of all its
first frame; then it gathers more frames, for less work in all, but never for longer than half of
what its listener has. What a request sounds like depends neither on the cuts nor on the others.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import OUTPUT_RATE_HZ, AudioChunk, AudioEnd, CodecChunk
from stages.contract.stage import Emit
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import enter_stream, pick_device, pick_dtype
from stages.models.qwen3_tts.code2wav.batches import FRAMES, Batches
from stages.models.qwen3_tts.code2wav.decoder import Decoder
from stages.models.qwen3_tts.code2wav.model_config import read_codec_config
from stages.models.qwen3_tts.code2wav.sound import Sound
from stages.runtime.deadlines import Playback
from stages.weights.safetensors import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from stages.contract.messages import Chunk, StageParams
    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig


class QwenCode2WavStage:
    """Implements `Stage`. Opened with `Code2WavParams`; takes `CodecChunk`s."""

    _decoder: Decoder
    _batches: Batches

    def __init__(
        self,
        config: QwenCode2WavConfig,
        clock: Callable[[], float] = time.monotonic,
        capture: Capture | None = None,
    ) -> None:
        self._config = config
        self._capture = capture
        self._playback = Playback(clock)
        self._sounds: dict[str, Sound] = {}

    @torch.inference_mode()
    def load(self) -> None:
        """See `Stage`. Raises CheckpointError for a codec that cannot be used."""
        config = self._config
        device = pick_device(config.device)
        enter_stream(device)
        model = read_codec_config(config.folder)
        self._decoder = Decoder(model, Weights(config.folder), device, pick_dtype(config.dtype))
        if device.type == "cuda":
            self._capture = self._capture or CudaCapture(device)
        self._batches = Batches(self._decoder, self._capture)

    def warm(self) -> None:
        """See `Stage`."""
        self._batches.warm()

    def open(self, request_id: str, params: StageParams) -> None:
        """See `Stage`."""
        self._sounds[request_id] = Sound(self._batches.new_stream(), self._decoder.config.hop)
        self._playback.open(request_id)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """See `Stage`. Raises RequestError for frames of another codec."""
        assert isinstance(chunk, CodecChunk)
        groups, wanted = chunk.codes.shape[1], self._decoder.config.num_quantizers
        if groups != wanted:
            raise RequestError(request_id, f"frames of {groups} codes, not {wanted}")
        self._sounds[request_id].feed(chunk, self._decoder.device)

    def end_input(self, request_id: str) -> None:
        """See `Stage`."""
        self._sounds[request_id].ended = True

    def wants_chunk(self, request_id: str) -> bool:
        """See `Stage`."""
        return self._sounds[request_id].wants_frames

    def ready(self, request_id: str) -> bool:
        """See `Stage`."""
        sound = self._sounds[request_id]
        if sound.ended:
            return True
        return sound.num_waiting >= self._wanted(request_id)

    def _wanted(self, request_id: str) -> int:
        """How many frames to gather before a request is decoded."""
        if self._sounds[request_id].num_unheard:
            return 1
        frames_left = self._playback.left_s(request_id) * OUTPUT_RATE_HZ / self._decoder.config.hop
        return max([size for size in FRAMES if size <= frames_left / 2], default=1)

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See `Stage`."""
        waiting = [request_id for request_id in credit if self._sounds[request_id].num_waiting]
        for request_id in credit.keys() - waiting:
            yield from self._end(request_id)
        if waiting:
            yield from self._decode(waiting)

    def _decode(self, waiting: list[str]) -> Iterator[Emit]:
        """Decode once."""
        chosen, num_frames = self._choose(self._playback.most_urgent_first(waiting))
        streams = [self._sounds[request_id].stream for request_id in chosen]
        codes = [self._sounds[request_id].take(num_frames) for request_id in chosen]
        samples = self._batches.decode(streams, codes)
        for request_id, row in zip(chosen, samples, strict=True):
            sound = self._sounds[request_id]
            if num_heard := sound.hear(num_frames):
                heard = row[len(row) - num_heard * sound.hop :]
                self._playback.emit(request_id, len(heard) / OUTPUT_RATE_HZ)
                yield Emit(request_id, AudioChunk(heard, OUTPUT_RATE_HZ, sound.captions()))
            yield from self._end(request_id)

    def _choose(self, urgent: list[str]) -> tuple[list[str], int]:
        """Which requests to decode together, and how many frames of each."""
        num_frames = self._batches.max_frames(self._sounds[urgent[0]].num_waiting)
        enough = [rid for rid in urgent if self._sounds[rid].num_waiting >= num_frames]
        return enough[: self._batches.max_streams(num_frames)], num_frames

    def _end(self, request_id: str) -> Iterator[Emit]:
        sound = self._sounds[request_id]
        if sound.drained:
            end = AudioEnd(sound.num_heard * sound.hop, audio_tokens=sound.num_heard)
            yield Emit(request_id, end=end)

    def close(self, request_id: str) -> None:
        """See `Stage`."""
        del self._sounds[request_id]
        self._playback.close(request_id)
