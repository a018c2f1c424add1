"""The talker stage: text of many requests in, latent frames of speech out.

A step serves one request: the one whose listener runs out of sound first. It encodes at most one
phrase and makes one slice of frames. Text is cut into pieces as it comes, so the first words are
spoken before the last are written. Requests with the same voice share its weights.
"""

from __future__ import annotations

import sys
import time
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakSet

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd, TalkerParams, TextChunk
from stages.contract.stage import Emit, as_request_error
from stages.kernels.convolution import Parameters
from stages.kernels.device import pick_device
from stages.models.piper.talker_request import (
    CONTEXT_FRAMES,
    MAX_FRAMES,
    Speaker,
    TalkerRequest,
    size_after,
)
from stages.models.piper.vits import Vits, phrase_noise
from stages.models.piper.voice_file import read_voice, voice_file
from stages.runtime.cores import FIRST_SOUNDS
from stages.runtime.playback_order import Playback
from stages.text.phonemizer import LetterPhonemizer, Phonemizer, make_phonemizer
from stages.text.reading import Reader
from stages.text.traced import Traced
from stages.weights.onnx import read_onnx
from stages.weights.voice_cache import VoiceCache, WeakCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from stages.contract.messages import Chunk, StageParams, VoiceFile
    from stages.contract.stage import Credit
    from stages.models.piper.talker_config import TalkerConfig

_MARGIN_S = 0.45  # code2wav has its own queue, and holds back the context of its next chunk
# Frames of a request's first slice, and the largest number of open requests, of all talkers in this
# process, for which it is used. Small slices cost more and last less: a listener with little sound
# in its buffer would run out of it when other requests begin.
_FIRST_FRAMES = ((5, 1), (16, 8), (64, 17), (128, sys.maxsize))
_shared_speakers: WeakCache[Speaker] = WeakCache()
_talkers: WeakSet[TalkerStage] = WeakSet()  # all of this process
_talkers_lock = Lock()
_WARM_IDS = range(40, 121, 8)  # phoneme ids of phrases of 20 to 60 characters
_WARM_TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the garden minds at all."


class TalkerStage:
    """Implements `Stage` for Piper voices."""

    def __init__(self, config: TalkerConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._playback = Playback(clock, _MARGIN_S)
        self._speakers: VoiceCache[Speaker] = VoiceCache(self._load, config.max_loaded_voices)
        self._files: dict[str, VoiceFile] = {}
        self._requests: dict[str, TalkerRequest] = {}
        with _talkers_lock:
            _talkers.add(self)

    def load(self) -> None:
        """Load the configured voices."""
        self._files = {name: voice_file(path) for name, path in self._config.voices.items()}
        for file in self._files.values():
            self._speakers.open(file)
            self._speakers.close(file)

    def _load(self, path: Path) -> Speaker:
        device = pick_device(self._config.device)
        key = voice_file(path), device, self._config.phonemizer
        return _shared_speakers.get(key, lambda: self._make(path, device))

    def _make(self, path: Path, device: torch.device) -> Speaker:
        voice = read_voice(path)
        onnx = read_onnx(path)
        model = Vits(Parameters(onnx, device, torch.float32))
        phonemizer: Phonemizer = LetterPhonemizer()
        if voice.phoneme_type == "espeak":
            phonemizer = make_phonemizer(self._config.phonemizer, voice.espeak_voice)
        reader = Reader(voice.language, phonemizer, voice.id_map)
        return Speaker(voice, model, reader, onnx.hop / voice.rate_hz)

    def warm(self) -> None:
        """Speak with each voice at the usual lengths, so that the first requests are fast."""
        for name, file in self._files.items():
            _warm(self._speakers.open(file), TalkerParams(name, seed=0))
            self._speakers.close(file)

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request. Raises RequestError for an unknown voice."""
        assert isinstance(params, TalkerParams)
        file = params.file or self._files.get(params.voice)
        if file is None:
            raise RequestError(request_id, f"no voice {params.voice!r}")
        self._requests[request_id] = TalkerRequest(self._speakers.open(file), file, params)
        self._playback.open(request_id)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Take the next text of a request."""
        assert isinstance(chunk, TextChunk)
        self._requests[request_id].feed(chunk.text)

    def end_input(self, request_id: str) -> None:
        """No more text will come."""
        self._requests[request_id].end_input()

    def wants_chunk(self, request_id: str) -> bool:
        """Whether the request takes more text now."""
        return self._requests[request_id].wants_text

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and something to speak or the end to report."""
        request = self._requests[request_id]
        return credit.both > 0 and (request.has_work or request.input_ended)

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Make one slice of the most urgent request in `credit`; report the end if it is done."""
        request_id = self._playback.most_urgent(credit)
        request = self._requests[request_id]
        if self._playback.is_newcomer(request_id):
            FIRST_SOUNDS.begin(request_id)
        with as_request_error(request_id):
            chunk = request.next_chunk(self._first_frames)
        if chunk is not None:
            sound_s = len(chunk.frames) * request.speaker.frame_s
            self._playback.emit(request_id, sound_s + chunk.pause_s)
            yield Emit(request_id, chunk)
        else:
            FIRST_SOUNDS.end(request_id)
        if request.input_ended and not request.has_work:
            yield Emit(request_id, end=SpeechEnd(request.num_frames))
        elif chunk is None:
            yield Emit(request_id)

    @property
    def _first_frames(self) -> int:
        with _talkers_lock:
            num_open = sum(len(talker._requests) for talker in _talkers)
        return next(frames for frames, max_open in _FIRST_FRAMES if num_open <= max_open)

    def close(self, request_id: str) -> None:
        """Drop the request and release its voice."""
        self._speakers.close(self._requests.pop(request_id).file)
        self._playback.close(request_id)
        FIRST_SOUNDS.end(request_id)


def _warm(speaker: Speaker, params: TalkerParams) -> None:
    """Compute the usual lengths of a first phrase, and the slices of a request beside few others.

    A length that was not computed before takes some milliseconds and 2 MB more.
    """
    model, scales, noise = speaker.model, speaker.scales(params), phrase_noise(0, 0)
    ids = speaker.reader.read(Traced.of(_WARM_TEXT), words=False)[0].ids
    for num_ids in _WARM_IDS:
        model.encode(ids[:num_ids], scales, noise)
    for frames, _ in _FIRST_FRAMES[:2]:
        latents = model.encode(ids, scales, noise)
        model.flow(latents, frames + CONTEXT_FRAMES)
        while not latents.is_complete and frames < MAX_FRAMES:
            frames = size_after(frames)
            model.flow(latents, frames)
