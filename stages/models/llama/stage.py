"""The thinker: a language model that writes the replies of many chats at once.

Each step is one forward pass: one more token for every ready request that has its prompt behind it,
and a bounded piece of the prompts that are still to be read. It knows no chat, only token ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open

from stages.contract.messages import TextEnd, ThinkerParams, TokenScore
from stages.contract.stage import Emit, as_request_error
from stages.kernels.attention import Segment
from stages.kernels.device import pick_device, step_tokens
from stages.kernels.transformer import Transformer, TransformerConfig
from stages.models.llama.grammar import Grammars
from stages.models.llama.packaged_model import prepare
from stages.models.llama.prefixes import Prefixes
from stages.models.llama.reply import Reply
from stages.models.llama.sampling import Draw, check_sampling, sample, score
from stages.models.llama.schedule import Writing, plan
from stages.models.llama.vocabulary import Vocabulary
from stages.runtime.cores import CORES, FIRST_SOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from stages.contract.messages import Chunk, StageParams
    from stages.kernels.kv_cache import KvCache
    from stages.models.llama.config import ThinkerConfig

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(slots=True)
class ThinkerStage:
    """The `Stage` of text. Opened with `ThinkerParams`; takes no chunks; emits `TextChunk`s."""

    config: ThinkerConfig
    _writings: dict[str, Writing] = field(default_factory=dict)
    _num_steps: int = 0
    _model: Transformer = field(init=False)
    _cache: KvCache = field(init=False)
    _prefixes: Prefixes = field(init=False)
    _vocabulary: Vocabulary = field(init=False)
    _grammars: Grammars = field(init=False)
    _end_tokens: frozenset[int] = field(init=False)
    _max_step_tokens: int = field(init=False)

    @property
    def num_open(self) -> int:
        """How many requests are open."""
        return len(self._writings)

    @property
    def num_slabs(self) -> int:
        """How many pieces of cache hold memory."""
        return self._cache.num_slabs

    def load(self) -> None:
        """Map the converted weights (made the first time); FileNotFoundError without a package."""
        device = pick_device(self.config.device)
        dtype = _dtype(self.config.dtype, device)
        files = prepare(self.config.cache_dir)
        settings = files.read_settings()
        self._vocabulary = Vocabulary(files.tokenizer)
        self._end_tokens = frozenset(settings.end_tokens)
        self._grammars = Grammars(files.tokenizer, settings.end_tokens)
        config = TransformerConfig(**settings.transformer)  # type: ignore[arg-type]
        with safe_open(files.weights, framework="pt") as weights:
            tensors = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118
        self._model = Transformer(config, tensors, device, dtype)
        self._cache = self._model.new_cache()
        self._prefixes = Prefixes(self._cache, self.config.max_kept_tokens)
        self._max_step_tokens = step_tokens(device, dtype)

    def warm(self) -> None:
        """Read a piece of a prompt as long as steps take, then one token."""
        length = min(self._max_step_tokens, self._model.config.max_tokens - 1)
        slot = self._cache.reserve(None, 0, length + 1)
        self._model.forward([Segment(slot, 0, (0,) * length)])
        self._model.forward([Segment(slot, length, (0,))])
        self._cache.release(slot)

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a reply; ValueError for a prompt or settings that cannot be used."""
        if not isinstance(params, ThinkerParams):
            raise TypeError(f"the thinker takes ThinkerParams, not {type(params).__name__}")
        check_sampling(params.sampling)
        room = self._model.config.max_tokens - len(params.prompt)
        if not params.prompt or room < 1:
            raise ValueError(f"a prompt of {len(params.prompt)} tokens leaves nothing to write")
        known = range(len(self._vocabulary))
        if not (min(params.prompt) in known and max(params.prompt) in known):
            raise ValueError("the prompt has tokens that the model does not know")
        if not all(token in known for token, _ in params.sampling.bias):
            raise ValueError("the bias has tokens that the model does not know")
        limit = min(params.max_tokens, room)
        reply = Reply(self._vocabulary, self._end_tokens, params.stop, limit)
        guide = None if params.schema is None else self._grammars.guide(params.schema)
        tokens = list(params.prompt)
        slot, num_known = self._prefixes.begin(tokens)
        self._writings[request_id] = Writing(
            request_id, params, tokens, reply, slot, num_known, guide=guide, num_known=num_known
        )

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Never called: `wants_chunk` is always False."""
        raise TypeError("the thinker takes no chunks")

    def end_input(self, request_id: str) -> None:
        """Nothing changes: the prompt was the whole input."""

    def wants_chunk(self, request_id: str) -> bool:
        """No: the prompt comes with `open`."""
        return False

    def ready(self, request_id: str) -> bool:
        """Whether the reply may go on."""
        return self._writings[request_id].reply.finish_reason is None

    def step(self, credit: Mapping[str, int]) -> Iterator[Emit]:
        """Advance up to `max_batch` of the requests in `credit`; those that waited longest first.

        If a request fails, those behind it in the batch have not moved: they do it again.
        """
        ready = [self._writings[request_id] for request_id in credit]
        chosen = plan(ready, self.config.max_batch, self._max_step_tokens)
        if not chosen:
            return
        FIRST_SOUNDS.give_way()
        torch.set_num_threads(CORES.num_threads())  # of this thread only; takes 0.3 µs
        parts = [(writing, self._segment(writing, count)) for writing, count in chosen]
        self._num_steps += 1
        logits = self._model.forward([segment for _, segment in parts])
        writers = [writing for writing, segment in parts if segment.want_logits]
        tokens = sample(logits, [_draw(writing) for writing in writers])
        rows = iter(zip(tokens, logits, strict=True))
        for writing, segment in parts:
            row = next(rows) if segment.want_logits else None
            writing.num_cached += len(segment.tokens)
            writing.last_step = self._num_steps
            if row is not None:
                with as_request_error(writing.request_id):
                    emits = self._write(writing, *row)
                yield from emits or [Emit(writing.request_id)]
            else:
                yield Emit(writing.request_id)

    def close(self, request_id: str) -> None:
        """Drop the request and its slot, and keep what was read."""
        writing = self._writings.pop(request_id)
        if writing.slot is not None:
            self._prefixes.keep(writing.tokens[: writing.num_cached], writing.slot)
            self._cache.release(writing.slot)

    def _segment(self, writing: Writing, count: int) -> Segment:
        start = writing.num_cached
        with as_request_error(writing.request_id):
            writing.slot = self._cache.reserve(writing.slot, start, len(writing.tokens))
        tokens = tuple(writing.tokens[start : start + count])
        return Segment(writing.slot, start, tokens, want_logits=count == writing.num_unread)

    def _write(self, writing: Writing, token: int, logits: Tensor) -> list[Emit]:
        """Add a token to the reply: what it lets out, and the end if it is one."""
        num_top = writing.params.num_top
        chunk = writing.reply.push(
            token, None if num_top is None else self._score(logits, token, num_top)
        )
        if writing.guide is not None:
            writing.guide.push(token)
        writing.tokens.append(token)
        emits = [Emit(writing.request_id, chunk=chunk)] if chunk else []
        if reason := writing.reply.finish_reason:
            num_prompt = len(writing.params.prompt)
            end = TextEnd(reason, num_prompt, writing.reply.num_tokens, writing.num_known)
            emits.append(Emit(writing.request_id, end=end))
        return emits

    def _score(self, logits: Tensor, token: int, num_top: int) -> TokenScore:
        logprob, top = score(logits, token, num_top)
        name = self._vocabulary.candidate
        return TokenScore(name(token, logprob), tuple(name(*candidate) for candidate in top))


def _draw(writing: Writing) -> Draw:
    sampling = writing.params.sampling
    penalised = sampling.frequency_penalty or sampling.presence_penalty
    with as_request_error(writing.request_id):
        allowed = None if writing.guide is None else writing.guide.allowed()
    written = writing.written if penalised else ()
    return Draw(sampling, writing.reply.num_tokens, written, allowed)


def _dtype(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 where the device multiplies it. ValueError for a name that is none."""
    if name == "auto":
        plain = device.type == "cpu" and not torch.cpu._is_avx512_bf16_supported()
        return torch.float32 if plain else torch.bfloat16
    if name not in _DTYPES:
        raise ValueError(f"dtype must be auto, {' or '.join(_DTYPES)}, not {name!r}")
    return _DTYPES[name]
