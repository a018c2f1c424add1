"""The talker of Qwen3-TTS: text of many requests in, a frame of each out with every step.

A step reads a part of what prompts are new, then makes the next frame of every request that has the
text for it. Requests come and go between steps (continuous batching); each has a row of the table
from its prompt to its last frame, and waits where none is free. The codes stay on the device; of a
step the host learns one number per row, when the codes are complete and while the device already
goes on.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd, TalkerParams, TextChunk
from stages.contract.stage import Emit, blame
from stages.kernels.attention import Span
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import enter_stream, on_device, pick_device, pick_dtype, step_tokens
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.talker.frames import FrameTable
from stages.models.qwen3_tts.talker.host_copy import HostCopy
from stages.models.qwen3_tts.talker.memory_budget import rows_that_fit
from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.prompt import Prompts, Reference
from stages.models.qwen3_tts.talker.speech import Speech
from stages.models.qwen3_tts.talker.steps import Steps
from stages.models.qwen3_tts.talker.text import SpeechText
from stages.models.qwen3_tts.talker.vocabulary import TextVocabulary
from stages.models.qwen3_tts.talker.voice_copier import VoiceCopier
from stages.weights.safetensors import Weights
from stages.weights.voice_cache import VoiceCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from stages.contract.messages import Chunk, StageParams
    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig


class QwenTalkerStage:
    """Implements `Stage`. Opened with `TalkerParams`; takes `TextChunk`s, emits `CodecChunk`s."""

    _model: QwenTtsConfig
    _talker: TalkerModel
    _table: FrameTable
    _steps: Steps
    _firsts: HostCopy
    _prompts: Prompts
    _vocabulary: TextVocabulary
    _copier: VoiceCopier | None
    _voices: VoiceCache[CopiedVoice]

    def __init__(self, config: QwenTalkerConfig, capture: Capture | None = None) -> None:
        self._config = config
        self._capture = capture
        self._speeches: dict[str, Speech] = {}
        self._free_rows: list[int] = []
        self._active: list[int] = []  # as the table has it

    @property
    def num_free_rows(self) -> int:
        """How many more speeches could run at once."""
        return len(self._free_rows)

    @torch.inference_mode()
    def load(self) -> None:
        """See `Stage`. Raises CheckpointError for a checkpoint that cannot be used."""
        config = self._config
        device = pick_device(config.device)
        enter_stream(device)
        dtype = _dtype(config.dtype, device)
        self._model = read_config(config.folder)
        self._vocabulary = TextVocabulary(config.folder)
        self._prompts = Prompts(self._model, self._vocabulary)
        weights = Weights(config.folder)
        self._talker = TalkerModel(self._model, weights, device, dtype)
        predictor = CodePredictor(self._talker, weights, dtype)
        self._copier = VoiceCopier(config.folder, self._talker, weights) if self._copies else None
        self._voices = VoiceCache(self._copier or _no_voice, config.max_loaded_voices)
        max_tokens = min(config.max_tokens, self._model.talker.max_tokens)
        num_rows = rows_that_fit(self._talker.decoder.cache_shape, max_tokens, config.max_rows)
        self._table = FrameTable(self._talker, predictor, num_rows, max_tokens)
        self._firsts = HostCopy(device, num_rows)
        self._free_rows = list(range(num_rows))
        self._step_tokens = step_tokens(device, dtype)
        if self._capture is None and device.type == "cuda":
            self._capture = CudaCapture(device)
        self._steps = Steps(self._table, predictor, self._capture)

    @property
    def _copies(self) -> bool:
        return self._model.kind == "base"

    def warm(self) -> None:
        """See `Stage`."""
        self._steps.warm()
        self._warm_row(0)
        if self._copier is not None:
            self._copier.warm()

    @torch.inference_mode()
    def _warm_row(self, row: int) -> None:
        """A prompt and a frame in a row that nobody has yet."""
        state = torch.zeros(
            16, self._model.talker.hidden_size, dtype=self._talker.dtype, device=self._talker.device
        )
        self._table.claim(row, len(state))
        last = self._table.read([Span(Slot(self._table.slab, row), 0, len(state))], [state])
        self._table.begin(row, last[0], 0)
        self._steps.predict(1)
        self._steps.advance(1, len(state) + 1)
        self._firsts.start(self._table.frames[:1, 0])
        self._firsts.wait()

    def open(self, request_id: str, params: StageParams) -> None:
        """See `Stage`. Raises RequestError for a voice, a language that is not there."""
        assert isinstance(params, TalkerParams)
        voice = None
        if params.file is not None:
            voice = self._voices.open(params.file)
        try:
            speech = self._speech(request_id, params, voice)
        except BaseException:
            if params.file is not None:
                self._voices.close(params.file)
            raise
        self._speeches[request_id] = speech

    def _speech(self, request_id: str, params: TalkerParams, voice: CopiedVoice | None) -> Speech:
        speaker = params.voice if self._model.kind == "custom_voice" else ""
        if self._copies and voice is None:
            raise RequestError(request_id, f"no voice {params.voice!r}")
        if speaker and speaker not in self._model.speakers:
            raise RequestError(request_id, f"no voice {params.voice!r}")
        if params.language and params.language not in self._model.languages:
            raise RequestError(request_id, f"no language {params.language!r}")
        reference = None
        if voice is not None:
            reference = Reference(voice.transcript, voice.num_frames)
        instructions = params.instructions if self._model.follows_instructions else ""
        prompt = self._prompts.make(speaker, params.language, instructions, reference)
        if prompt.length >= self._table.max_tokens:
            raise RequestError(request_id, f"{prompt.length} tokens are too many to begin with")
        codes = self._model.text
        text = SpeechText(self._vocabulary, params)
        return Speech(request_id, params, prompt, text, codes.eos, codes.pad, voice, params.file)

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """See `Stage`."""
        assert isinstance(chunk, TextChunk)
        self._speeches[request_id].feed(chunk.text)

    def end_input(self, request_id: str) -> None:
        """See `Stage`."""
        self._speeches[request_id].end()

    def wants_chunk(self, request_id: str) -> bool:
        """See `Stage`."""
        return self._speeches[request_id].wants_text

    def ready(self, request_id: str) -> bool:
        """See `Stage`."""
        speech = self._speeches[request_id]
        if speech.row is None:
            begins = speech.can_begin and bool(self._free_rows)
            return speech.copies or speech.is_silent or begins
        return speech.reads or speech.can_speak

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """See `Stage`."""
        yield from self._step([self._speeches[request_id] for request_id in credit])

    @torch.inference_mode()
    def _step(self, ready: Sequence[Speech]) -> list[Emit]:
        for speech in ready:
            self._check_length(speech)
        self._copy_voice(ready)
        emits = [_end(speech) for speech in ready if speech.is_silent]
        begun = self._read_prompts([speech for speech in ready if not speech.is_silent])
        references = [(speech.request_id, speech.reference_chunk()) for speech in begun]
        emits += [Emit(request_id, chunk) for request_id, chunk in references if chunk is not None]
        sent = {emit.request_id for emit in emits}
        speaking = [s for s in ready if s.can_speak and s.request_id not in sent]
        return emits + (self._make_frames(speaking) if speaking else [])

    def close(self, request_id: str) -> None:
        """See `Stage`."""
        speech = self._speeches.pop(request_id)
        self._release(speech)
        if speech.file is not None:
            self._voices.close(speech.file)

    def _release(self, speech: Speech) -> None:
        if speech.row is not None:
            heapq.heappush(self._free_rows, speech.row)
            speech.row = None

    def _check_length(self, speech: Speech) -> None:
        """Fail a speech that does not end: the model has lost its way, or the text is too long."""
        if (
            speech.position + 1 >= self._table.max_tokens
            or speech.num_frames >= self._model.max_frames
        ):
            message = f"the speech did not end within {speech.num_frames} frames"
            raise RequestError(speech.request_id, message)

    def _copy_voice(self, ready: Sequence[Speech]) -> None:
        """Do a part of a voice that is being copied: that of who came first."""
        copying = (s for s in self._speeches.values() if s.copies and s in ready)
        if (speech := next(copying, None)) is not None and speech.voice is not None:
            with blame(speech.request_id):
                speech.voice.copy_on()

    # Prompts.

    def _read_prompts(self, ready: Sequence[Speech]) -> list[Speech]:
        """Read a step's worth of the prompts of those who are new; those whose is complete."""
        parts: list[tuple[Speech, int]] = []
        budget = self._step_tokens
        for speech in sorted(ready, key=lambda speech: speech.prompt.length - speech.num_read):
            if budget > 0 and (speech.reads or self._admit(speech)):
                count = min(budget, speech.prompt.length - speech.num_read)
                budget -= count
                parts.append((speech, count))
        if not parts:
            return []
        spans = [self._span(speech, count) for speech, count in parts]
        states = [
            speech.state[span.start :][: span.length]
            for (speech, _), span in zip(parts, spans, strict=True)
        ]
        last = iter(self._table.read(spans, states))
        begun = []
        for speech, count in parts:
            speech.num_read += count
            if not speech.reads:
                self._begin(speech, next(last))
                begun.append(speech)
        return begun

    def _admit(self, speech: Speech) -> bool:
        """Give a speech a row and its prompt, where both can be had."""
        if speech.row is not None or not speech.can_begin or not self._free_rows:
            return False
        with blame(speech.request_id):
            speech.state = self._talker.embed_prompt(
                speech.prompt_text(), speech.prompt, speech.voice
            )
        speech.row = heapq.heappop(self._free_rows)
        self._table.claim(speech.row, speech.prompt.length)
        return True

    def _span(self, speech: Speech, count: int) -> Span:
        assert speech.row is not None
        is_last = speech.num_read + count == speech.prompt.length
        return Span(Slot(self._table.slab, speech.row), speech.num_read, count, is_last)

    def _begin(self, speech: Speech, state: Tensor) -> None:
        assert speech.row is not None
        speech.state = None
        self._table.begin(speech.row, state, speech.params.seed)

    # Frames.

    def _make_frames(self, speaking: Sequence[Speech]) -> list[Emit]:
        """The next frame of each."""
        rows = self._activate(speaking)
        num_rows = max(rows) + 1
        self._steps.predict(num_rows)
        frames = self._table.frames[:num_rows].clone()
        self._firsts.start(frames[:, 0])
        self._steps.advance(num_rows, max(speech.position for speech in speaking) + 1)
        firsts = self._firsts.wait()
        emits = []
        for speech, row in zip(speaking, rows, strict=True):
            if firsts[row] == self._model.control.eos:
                emits += self._end(speech)
                continue
            chunk = speech.frame_chunk(frames[row : row + 1])
            if chunk is not None:
                emits.append(Emit(speech.request_id, chunk))
        return emits

    def _activate(self, speaking: Sequence[Speech]) -> list[int]:
        """Tell the table who speaks, and what text is read; their rows."""
        device = self._talker.device
        rows = []
        for speech in speaking:
            assert speech.row is not None
            rows.append(speech.row)
            at, tokens = speech.unsent()
            if tokens := tokens[: self._table.max_tokens - at]:
                self._table.stream(speech.row, at, on_device(tokens, device))
        if sorted(rows) != self._active:
            self._active = sorted(rows)
            mask = [int(row in rows) for row in range(self._table.num_rows)]
            self._table.active.copy_(on_device(mask, device))
        return rows

    def _end(self, speech: Speech) -> list[Emit]:
        self._release(speech)
        chunk = speech.last_chunk()
        last = [Emit(speech.request_id, chunk)] if chunk is not None else []
        return [*last, _end(speech)]


def _no_voice(path: Path) -> CopiedVoice:
    raise ValueError("this model copies no voice")


def _dtype(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        name = "float32" if device.type == "cpu" else "bfloat16"
    return pick_dtype(name)


def _end(speech: Speech) -> Emit:
    return Emit(speech.request_id, end=SpeechEnd(speech.num_frames))
