"""The code2wav stage: latent frames of many requests in, 24 kHz sound out.

A step decodes one chunk of one request: the one whose listener runs out of sound first. The talker
sends little at first, so the first sound comes early. The sound of a request does not depend on
when its frames came, how they were cut, or what other requests run.
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
    LatentChunk,
)
from stages.contract.stage import Emit, as_request_error
from stages.kernels.convolution import Parameters
from stages.kernels.device import AutoDtype, pick_device, pick_dtype
from stages.models.piper.code2wav_request import SIZES, Code2WavRequest, VoiceDecoder
from stages.models.piper.hifigan import HifiGan
from stages.models.piper.voice_file import read_voice, voice_file
from stages.runtime.cores import FIRST_SOUNDS
from stages.runtime.playback_order import Playback
from stages.weights.onnx import read_onnx
from stages.weights.voice_cache import VoiceCache, WeakCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from stages.contract.messages import Chunk, StageParams, VoiceFile
    from stages.contract.stage import Credit
    from stages.models.piper.code2wav_config import Code2WavConfig

_TOKENS_PER_S = 20  # usage: one audio token for each started 50 ms

_shared_decoders: WeakCache[VoiceDecoder] = WeakCache()


class Code2WavStage:
    """Implements `Stage` for the decoders of Piper voices."""

    def __init__(self, config: Code2WavConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._playback = Playback(clock)
        self._decoders: VoiceCache[VoiceDecoder] = VoiceCache(self._load, config.max_loaded_voices)
        self._files: dict[str, VoiceFile] = {}
        self._requests: dict[str, Code2WavRequest] = {}

    def load(self) -> None:
        """Load the decoders of the configured voices."""
        self._files = {name: voice_file(path) for name, path in self._config.voices.items()}
        for file in self._files.values():
            self._decoders.open(file)
            self._decoders.close(file)
        FIRST_SOUNDS.made_here = True

    def _load(self, path: Path) -> VoiceDecoder:
        device = pick_device(self._config.device)
        dtype = pick_dtype(self._config.dtype, device, AutoDtype.VOICE_DECODER)

        def make() -> VoiceDecoder:
            model = HifiGan(Parameters(read_onnx(path), device, dtype))
            return VoiceDecoder(model, read_voice(path).rate_hz)

        return _shared_decoders.get((voice_file(path), device, dtype), make)

    def warm(self) -> None:
        """Decode one chunk of each size with each voice, so that the first requests are fast."""
        for file in self._files.values():
            model = self._decoders.open(file).model
            for size in SIZES:
                model.decode(torch.zeros(size, model.channels), 0, size, size)
            self._decoders.close(file)

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request. Raises RequestError for an unknown voice."""
        assert isinstance(params, Code2WavParams)
        file = params.file or self._files.get(params.voice)
        if file is None:
            raise RequestError(request_id, f"no voice {params.voice!r}")
        decoder = self._decoders.open(file)
        self._requests[request_id] = Code2WavRequest(decoder, file, params.speaker)
        self._playback.open(request_id)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Take the next latent frames of a request."""
        assert isinstance(chunk, LatentChunk)
        self._requests[request_id].feed(chunk)

    def end_input(self, request_id: str) -> None:
        """No more frames will come."""
        self._requests[request_id].end_input()

    def wants_chunk(self, request_id: str) -> bool:
        """Whether the request takes more frames now."""
        return self._requests[request_id].wants_frames

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and frames to decode or the end to report."""
        request = self._requests[request_id]
        return credit.both > 0 and (request.has_work or request.is_drained)

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Decode one chunk of the most urgent request in `credit`; report the end if it is done."""
        request_id = self._playback.most_urgent(credit)
        request = self._requests[request_id]
        with as_request_error(request_id):
            samples, captions = request.next_samples()
        if len(samples):
            self._playback.emit(request_id, len(samples) / OUTPUT_RATE_HZ)
            yield Emit(request_id, AudioChunk(samples, OUTPUT_RATE_HZ, captions))
            FIRST_SOUNDS.end(request_id)
        if request.is_drained:
            tokens = -(-request.num_samples * _TOKENS_PER_S // OUTPUT_RATE_HZ)
            yield Emit(request_id, end=AudioEnd(request.num_samples, tokens))
        elif not len(samples):
            yield Emit(request_id)

    def close(self, request_id: str) -> None:
        """Drop the request and release its voice."""
        self._decoders.close(self._requests.pop(request_id).file)
        self._playback.close(request_id)
        FIRST_SOUNDS.end(request_id)
