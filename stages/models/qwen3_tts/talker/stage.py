"""The talker stage of Qwen3-TTS: reads the text of many requests and makes their frames.

A step prefills a part of the new prompts. Then it makes the next frame of every sequence whose text
token for that frame is there. Requests come and go between steps (continuous batching). A sequence
has a row of the batch from its prefill to its last frame, and waits if no row is free. The codes
stay on the device. Per step the host reads one number for each row. It gets them as soon as the
codes are complete, while the device continues with the second half of the step.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import torch

from stages.contract.errors import RequestError
from stages.contract.messages import SpeechEnd, TalkerParams, TextChunk
from stages.contract.stage import Emit, as_request_error
from stages.kernels.attention import Span
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import (
    AutoDtype,
    enter_stream,
    on_device,
    pick_device,
    pick_dtype,
    step_tokens,
)
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.settings import QwenSettings
from stages.models.qwen3_tts.talker.decode_batch import DecodeBatch
from stages.models.qwen3_tts.talker.host_copy import HostCopy
from stages.models.qwen3_tts.talker.memory_budget import num_rows_that_fit
from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.prompt import PromptBuilder, Reference
from stages.models.qwen3_tts.talker.sequence import SpeechSequence
from stages.models.qwen3_tts.talker.step_runner import StepRunner
from stages.models.qwen3_tts.talker.streaming_tokenizer import StreamingTokenizer
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from stages.models.qwen3_tts.talker.voice_copier import VoiceCopier
from stages.weights.safetensors import Weights
from stages.weights.voice_cache import VoiceCache

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from torch import Tensor

    from stages.contract.messages import Chunk, StageParams
    from stages.contract.stage import Credit
    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig


class QwenTalkerStage:
    """Implements `Stage`. Opened with `TalkerParams`; takes `TextChunk`s, emits `CodecChunk`s."""

    _model: QwenTtsConfig
    _talker: TalkerModel
    _batch: DecodeBatch
    _step_runner: StepRunner
    _first_codes_on_host: HostCopy
    _prompt_builder: PromptBuilder
    _tokenizer: TextTokenizer
    _copier: VoiceCopier | None
    _voices: VoiceCache[CopiedVoice]

    def __init__(self, config: QwenTalkerConfig, capture: Capture | None = None) -> None:
        self._config = config
        self._capture = capture
        self._sequences: dict[str, SpeechSequence] = {}
        self._free_rows: list[int] = []
        self._active_rows: list[int] = []  # as in the batch

    @property
    def num_free_rows(self) -> int:
        """How many more sequences could run now."""
        return len(self._free_rows)

    @torch.inference_mode()
    def load(self) -> None:
        """Load the checkpoint. Raises CheckpointError if it cannot be used."""
        config = self._config
        device = pick_device(config.device)
        enter_stream(device)
        dtype = pick_dtype(config.dtype, device, AutoDtype.SPEECH_LANGUAGE_MODEL)
        self._model = read_config(config.folder)
        self._tokenizer = TextTokenizer(config.folder)
        self._prompt_builder = PromptBuilder(self._model, self._tokenizer)
        weights = Weights(config.folder)
        self._talker = TalkerModel(self._model, weights, device, dtype)
        predictor = CodePredictor(self._talker, weights, dtype)
        self._copier = (
            VoiceCopier(config.folder, self._talker, weights) if self._copies_voices else None
        )
        self._voices = VoiceCache(self._copier or _refuse_recording, config.max_loaded_voices)
        max_tokens = min(config.max_tokens, self._model.talker.max_tokens)
        num_rows = num_rows_that_fit(self._talker.decoder.cache_shape, max_tokens, config.max_rows)
        self._batch = DecodeBatch(self._talker, predictor, num_rows, max_tokens)
        self._first_codes_on_host = HostCopy(device, num_rows)
        self._free_rows = list(range(num_rows))
        self._step_tokens = step_tokens(device, dtype)
        if self._capture is None and device.type == "cuda":
            self._capture = CudaCapture(device)
        self._step_runner = StepRunner(self._batch, predictor, self._capture)

    @property
    def _copies_voices(self) -> bool:
        return self._model.kind == "base"

    def warm(self) -> None:
        """Capture all graphs, make one frame, and run the voice copier once."""
        self._step_runner.warm()
        self._warm_row(0)
        if self._copier is not None:
            self._copier.warm()

    @torch.inference_mode()
    def _warm_row(self, row: int) -> None:
        """Prefill a prompt and make a frame in a row that is not in use yet."""
        embeddings = torch.zeros(
            16, self._model.talker.hidden_size, dtype=self._talker.dtype, device=self._talker.device
        )
        self._batch.claim(row, len(embeddings))
        span = Span(Slot(self._batch.slab, row), 0, len(embeddings))
        last = self._batch.prefill([span], [embeddings])
        self._batch.begin(row, last[0], 0)
        self._step_runner.predict(1)
        self._step_runner.advance(1, len(embeddings) + 1)
        self._first_codes_on_host.start(self._batch.frames[:1, 0])
        self._first_codes_on_host.wait()

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a request. Raises RequestError for a voice or a language that the model lacks."""
        assert isinstance(params, TalkerParams)
        voice = None
        if params.file is not None:
            voice = self._voices.open(params.file)
        try:
            sequence = self._new_sequence(request_id, params, voice)
        except BaseException:
            if params.file is not None:
                self._voices.close(params.file)
            raise
        self._sequences[request_id] = sequence

    def _new_sequence(
        self, request_id: str, params: TalkerParams, voice: CopiedVoice | None
    ) -> SpeechSequence:
        speaker = params.voice if self._model.kind == "custom_voice" else ""
        if self._copies_voices and voice is None:
            raise RequestError(request_id, f"the model has no voice {params.voice!r}")
        if speaker and speaker not in self._model.speakers:
            raise RequestError(request_id, f"the model has no voice {params.voice!r}")
        chosen = params.settings or QwenSettings()
        if chosen.language and chosen.language not in self._model.languages:
            raise RequestError(
                request_id, f"the model does not speak the language {chosen.language!r}"
            )
        reference = None
        if voice is not None:
            reference = Reference(voice.transcript, voice.num_frames)
        instructions = chosen.instructions if self._model.follows_instructions else ""
        prompt = self._prompt_builder.build(speaker, chosen.language, instructions, reference)
        if prompt.length >= self._batch.max_tokens:
            most = self._batch.max_tokens - 1
            message = f"the prompt has {prompt.length} tokens; at most {most} are allowed"
            raise RequestError(request_id, message)
        control = self._model.text
        tokenizer = StreamingTokenizer(self._tokenizer, params)
        return SpeechSequence(
            request_id, params, prompt, tokenizer, control.eos, control.pad, voice, params.file
        )

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Add text to a request."""
        assert isinstance(chunk, TextChunk)
        self._sequences[request_id].feed(chunk.text)

    def end_input(self, request_id: str) -> None:
        """Note that the text of a request is complete."""
        self._sequences[request_id].end()

    def wants_chunk(self, request_id: str) -> bool:
        """Whether the request takes more text now."""
        return self._sequences[request_id].wants_text

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and a step could advance the request."""
        if credit.both <= 0:
            return False
        sequence = self._sequences[request_id]
        if sequence.row is None:
            begins = sequence.can_prefill and bool(self._free_rows)
            return sequence.is_copying_voice or sequence.is_empty or begins
        return sequence.is_prefilling or sequence.can_decode

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Prefill a part of the new prompts, then make a frame of each sequence that can decode."""
        yield from self._step([self._sequences[request_id] for request_id in credit])

    @torch.inference_mode()
    def _step(self, ready: Sequence[SpeechSequence]) -> list[Emit]:
        for sequence in ready:
            self._check_length(sequence)
        self._copy_voice(ready)
        emits = [_end_emit(sequence) for sequence in ready if sequence.is_empty]
        begun = self._prefill([sequence for sequence in ready if not sequence.is_empty])
        references = [(sequence.request_id, sequence.reference_chunk()) for sequence in begun]
        emits += [Emit(request_id, chunk) for request_id, chunk in references if chunk is not None]
        sent = {emit.request_id for emit in emits}
        decoding = [s for s in ready if s.can_decode and s.request_id not in sent]
        return emits + (self._make_frames(decoding) if decoding else [])

    def close(self, request_id: str) -> None:
        """Free the row and the voice of a request."""
        sequence = self._sequences.pop(request_id)
        self._release(sequence)
        if sequence.file is not None:
            self._voices.close(sequence.file)

    def _release(self, sequence: SpeechSequence) -> None:
        if sequence.row is not None:
            heapq.heappush(self._free_rows, sequence.row)
            sequence.row = None

    def _check_length(self, sequence: SpeechSequence) -> None:
        """Fail a sequence that does not end: the model went astray, or the text is too long."""
        if (
            sequence.position + 1 >= self._batch.max_tokens
            or sequence.num_frames >= self._model.max_frames
        ):
            message = f"the speech did not end within {sequence.num_frames} frames"
            raise RequestError(sequence.request_id, message)

    def _copy_voice(self, ready: Sequence[SpeechSequence]) -> None:
        """Do one part of copying a voice, for the request that came first."""
        copying = (s for s in self._sequences.values() if s.is_copying_voice and s in ready)
        if (sequence := next(copying, None)) is not None and sequence.voice is not None:
            with as_request_error(sequence.request_id):
                sequence.voice.copy_next_part()

    # Prefill.

    def _prefill(self, ready: Sequence[SpeechSequence]) -> list[SpeechSequence]:
        """Prefill at most `_step_tokens` prompt positions, shortest remaining prompt first.

        Returns the sequences whose prefill is complete.
        """
        parts: list[tuple[SpeechSequence, int]] = []
        budget = self._step_tokens
        for sequence in sorted(ready, key=lambda s: s.prompt.length - s.num_prefilled):
            if budget > 0 and (sequence.is_prefilling or self._admit(sequence)):
                count = min(budget, sequence.prompt.length - sequence.num_prefilled)
                budget -= count
                parts.append((sequence, count))
        if not parts:
            return []
        spans = [self._span(sequence, count) for sequence, count in parts]
        embeddings = [
            sequence.prompt_embeddings[span.start :][: span.length]
            for (sequence, _), span in zip(parts, spans, strict=True)
        ]
        last = iter(self._batch.prefill(spans, embeddings))
        begun = []
        for sequence, count in parts:
            sequence.num_prefilled += count
            if not sequence.is_prefilling:
                self._begin(sequence, next(last))
                begun.append(sequence)
        return begun

    def _admit(self, sequence: SpeechSequence) -> bool:
        """Give a sequence a row and embed its prompt. False if it cannot begin yet."""
        if sequence.row is not None or not sequence.can_prefill or not self._free_rows:
            return False
        with as_request_error(sequence.request_id):
            sequence.prompt_embeddings = self._talker.embed_prompt(
                sequence.prompt_text(), sequence.prompt, sequence.voice
            )
        sequence.row = heapq.heappop(self._free_rows)
        self._batch.claim(sequence.row, sequence.prompt.length)
        return True

    def _span(self, sequence: SpeechSequence, count: int) -> Span:
        assert sequence.row is not None
        is_last = sequence.num_prefilled + count == sequence.prompt.length
        return Span(Slot(self._batch.slab, sequence.row), sequence.num_prefilled, count, is_last)

    def _begin(self, sequence: SpeechSequence, hidden: Tensor) -> None:
        assert sequence.row is not None
        sequence.prompt_embeddings = None
        self._batch.begin(sequence.row, hidden, sequence.params.seed)

    # Decode.

    def _make_frames(self, decoding: Sequence[SpeechSequence]) -> list[Emit]:
        """Make the next frame of each sequence."""
        rows = self._activate(decoding)
        num_rows = max(rows) + 1
        self._step_runner.predict(num_rows)
        frames = self._batch.frames[:num_rows].clone()
        self._first_codes_on_host.start(frames[:, 0])
        self._step_runner.advance(num_rows, max(s.position for s in decoding) + 1)
        first_codes = self._first_codes_on_host.wait()
        emits = []
        for sequence, row in zip(decoding, rows, strict=True):
            if first_codes[row] == self._model.control.eos:
                emits += self._end(sequence)
                continue
            chunk = sequence.frame_chunk(frames[row : row + 1])
            if chunk is not None:
                emits.append(Emit(sequence.request_id, chunk))
        return emits

    def _activate(self, decoding: Sequence[SpeechSequence]) -> list[int]:
        """Set the active rows of the batch and their new text tokens. Returns the rows."""
        device = self._talker.device
        rows = []
        for sequence in decoding:
            assert sequence.row is not None
            rows.append(sequence.row)
            frame, tokens = sequence.take_unsent()
            if tokens := tokens[: self._batch.max_tokens - frame]:
                self._batch.set_text(sequence.row, frame, on_device(tokens, device))
        if sorted(rows) != self._active_rows:
            self._active_rows = sorted(rows)
            mask = [int(row in rows) for row in range(self._batch.num_rows)]
            self._batch.active.copy_(on_device(mask, device))
        return rows

    def _end(self, sequence: SpeechSequence) -> list[Emit]:
        self._release(sequence)
        chunk = sequence.last_chunk()
        last = [Emit(sequence.request_id, chunk)] if chunk is not None else []
        return [*last, _end_emit(sequence)]


def _refuse_recording(path: Path) -> CopiedVoice:
    raise ValueError("this model does not copy voices; use a Base checkpoint")


def _end_emit(sequence: SpeechSequence) -> Emit:
    return Emit(sequence.request_id, end=SpeechEnd(sequence.num_frames))
