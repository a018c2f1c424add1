"""code2wav: latent frames of many requests in, 24 kHz sound out.

A step decodes what is there of one request, the one whose listener runs dry first; the talker
sends little at first, so that it is heard early. What a request sounds like does not depend on how
its frames came, how they were cut, or on the others.
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
from stages.kernels.device import pick_device, pick_dtype
from stages.models.piper.code2wav_request import SIZES, Sound, VoiceDecoder
from stages.models.piper.hifigan import HifiGan
from stages.models.piper.voice_file import read_voice, voice_file
from stages.runtime.cores import FIRST_SOUNDS
from stages.runtime.deadlines import Playback
from stages.weights.onnx import read_onnx
from stages.weights.voice_cache import Shared, VoiceCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from stages.contract.messages import Chunk, StageParams, VoiceFile
    from stages.models.piper.code2wav_config import Code2WavConfig

_TOKENS_PER_S = 20  # usage: one audio token for each 50 ms begun

_decoders: Shared[VoiceDecoder] = Shared()


class Code2WavStage:
    """Implements `Stage` for the decoders of Piper voices."""

    def __init__(self, config: Code2WavConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._playback = Playback(clock)
        self._decoders: VoiceCache[VoiceDecoder] = VoiceCache(self._load, config.max_loaded_voices)
        self._files: dict[str, VoiceFile] = {}
        self._sounds: dict[str, Sound] = {}

    def load(self) -> None:
        """See `Stage`."""
        self._files = {name: voice_file(path) for name, path in self._config.voices.items()}
        for file in self._files.values():
            self._decoders.open(file)
            self._decoders.close(file)
        FIRST_SOUNDS.made_here = True

    def _load(self, path: Path) -> VoiceDecoder:
        device = pick_device(self._config.device)
        dtype = _dtype(self._config.dtype, device)

        def make() -> VoiceDecoder:
            model = HifiGan(Parameters(read_onnx(path), device, dtype))
            return VoiceDecoder(model, read_voice(path).rate_hz)

        return _decoders.get((voice_file(path), device, dtype), make)

    def warm(self) -> None:
        """See `Stage`."""
        for file in self._files.values():
            model = self._decoders.open(file).model
            for size in SIZES:
                model.decode(torch.zeros(size, model.channels), 0, size, size)
            self._decoders.close(file)

    def open(self, request_id: str, params: StageParams) -> None:
        """See `Stage`. Raises RequestError for a voice that is not there."""
        assert isinstance(params, Code2WavParams)
        file = params.file or self._files.get(params.voice)
        if file is None:
            raise RequestError(request_id, f"no voice {params.voice!r}")
        self._sounds[request_id] = Sound(self._decoders.open(file), file, params.speaker)
        self._playback.open(request_id)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """See `Stage`."""
        assert isinstance(chunk, LatentChunk)
        self._sounds[request_id].feed(chunk)

    def end_input(self, request_id: str) -> None:
        """See `Stage`."""
        self._sounds[request_id].end()

    def wants_chunk(self, request_id: str) -> bool:
        """See `Stage`."""
        return self._sounds[request_id].wants_frames

    def ready(self, request_id: str) -> bool:
        """See `Stage`."""
        sound = self._sounds[request_id]
        return sound.has_work or sound.drained

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See `Stage`."""
        request_id = self._playback.most_urgent(credit)
        sound = self._sounds[request_id]
        with as_request_error(request_id):
            samples, captions = sound.next_samples()
        if len(samples):
            self._playback.emit(request_id, len(samples) / OUTPUT_RATE_HZ)
            yield Emit(request_id, AudioChunk(samples, OUTPUT_RATE_HZ, captions))
            FIRST_SOUNDS.end(request_id)
        if sound.drained:
            tokens = -(-sound.num_samples * _TOKENS_PER_S // OUTPUT_RATE_HZ)
            yield Emit(request_id, end=AudioEnd(sound.num_samples, tokens))
        elif not len(samples):
            yield Emit(request_id)

    def close(self, request_id: str) -> None:
        """See `Stage`."""
        self._decoders.close(self._sounds.pop(request_id).file)
        self._playback.close(request_id)
        FIRST_SOUNDS.end(request_id)


def _dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 on a CPU that multiplies it: 39 dB and more from float32, and recognised
    as well (tests/stages/code2wav)."""
    if name == "auto" and device.type == "cpu" and torch.cpu._is_avx512_bf16_supported():
        return torch.bfloat16
    return pick_dtype(name)
