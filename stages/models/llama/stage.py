"""The thinker stage: a language model that writes the replies of many chats at once.

Each step is one forward pass. It writes one token of each reply, and reads bounded pieces of the
prompts that are not read yet. Prompts are tokenized when a request opens, by the same code with
which the server checked them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from safetensors import safe_open

from stages.contract.messages import TextEnd, ThinkerParams, TokenScore
from stages.contract.stage import Emit, as_request_error
from stages.kernels.attention import Segment
from stages.kernels.device import AutoDtype, pick_device, pick_dtype, step_tokens
from stages.kernels.transformer import Transformer, TransformerConfig
from stages.models.llama.grammar import Grammars
from stages.models.llama.packaged_model import prepare
from stages.models.llama.prefix_cache import PrefixCache
from stages.models.llama.prompts import SmolPrompts
from stages.models.llama.reply import Reply
from stages.models.llama.sampling import Draw, check_sampling, sample, score
from stages.models.llama.schedule import ThinkerRequest, plan
from stages.runtime.cores import CORES, FIRST_SOUNDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from torch import Tensor

    from stages.contract.messages import Chunk, Prompt, StageParams
    from stages.contract.stage import Credit
    from stages.kernels.kv_cache import KvCache
    from stages.models.llama.config import ThinkerConfig
    from stages.models.llama.vocabulary import Vocabulary

# The choices of a request open one after the other, with equal prompts. To tokenize 8,000 tokens
# takes 10 to 19 ms, as long as a step; to find them again takes 0.02 ms.
_MAX_KEPT_PROMPTS = 4


@dataclass(slots=True)
class ThinkerStage:
    """Implements `Stage`: opens with `ThinkerParams`, takes no chunks, emits `TextChunk`s."""

    config: ThinkerConfig
    _requests: dict[str, ThinkerRequest] = field(default_factory=dict)
    _num_steps: int = 0
    _model: Transformer = field(init=False)
    _cache: KvCache = field(init=False)
    _prefixes: PrefixCache = field(init=False)
    _tokenize: Callable[[Prompt], tuple[int, ...]] = field(init=False)
    _vocabulary: Vocabulary = field(init=False)
    _grammars: Grammars = field(init=False)
    _end_tokens: frozenset[int] = field(init=False)
    _max_step_tokens: int = field(init=False)

    @property
    def num_open(self) -> int:
        """How many requests are open."""
        return len(self._requests)

    @property
    def num_slabs(self) -> int:
        """How many slabs of the cache are allocated."""
        return self._cache.num_slabs

    def load(self) -> None:
        """Load the weights, and convert them the first time.

        Raises FileNotFoundError if the package with the weights is not installed.
        """
        device = pick_device(self.config.device)
        dtype = pick_dtype(self.config.dtype, device, AutoDtype.LANGUAGE_MODEL)
        files = prepare(self.config.cache_dir)
        settings = files.read_settings()
        prompts = SmolPrompts(files)
        self._tokenize = lru_cache(_MAX_KEPT_PROMPTS)(prompts.tokenize)
        self._vocabulary = prompts.vocabulary
        self._end_tokens = frozenset(settings.end_tokens)
        self._grammars = Grammars(files.tokenizer, settings.end_tokens)
        config = TransformerConfig(**settings.transformer)  # type: ignore[arg-type]
        with safe_open(files.weights, framework="pt") as weights:
            tensors = {name: weights.get_tensor(name) for name in weights.keys()}  # noqa: SIM118
        self._model = Transformer(config, tensors, device, dtype)
        self._cache = self._model.new_cache()
        self._prefixes = PrefixCache(self._cache, self.config.max_kept_tokens)
        self._max_step_tokens = step_tokens(device, dtype)

    def warm(self) -> None:
        """Read a prompt as long as a step takes, then one token."""
        length = min(self._max_step_tokens, self._model.config.max_tokens - 1)
        slot = self._cache.reserve(None, 0, length + 1)
        self._model.forward([Segment(slot, 0, (0,) * length)])
        self._model.forward([Segment(slot, length, (0,))])
        self._cache.release(slot)

    def open(self, request_id: str, params: StageParams) -> None:
        """Begin a reply. Raises ValueError for a prompt or settings that cannot be used."""
        if not isinstance(params, ThinkerParams):
            raise TypeError(f"the thinker takes ThinkerParams, not {type(params).__name__}")
        check_sampling(params.sampling)
        tokens = list(self._tokenize(params.prompt))
        num_prompt = len(tokens)
        context = self._model.config.max_tokens
        num_left = context - num_prompt
        if not tokens or num_left < 1:
            raise ValueError(
                f"a prompt of {num_prompt} tokens is not possible: it must have from 1 to "
                f"{context - 1}"
            )
        known = range(len(self._vocabulary))
        if not (min(tokens) in known and max(tokens) in known):
            raise ValueError("the prompt has token ids that are not in the vocabulary")
        if not all(token in known for token, _ in params.sampling.bias):
            raise ValueError("the bias has token ids that are not in the vocabulary")
        limit = min(params.max_tokens, num_left)
        reply = Reply(self._vocabulary, self._end_tokens, params.stop, limit)
        guide = None if params.schema is None else self._grammars.guide(params.schema)
        slot, num_reused = self._prefixes.begin(tokens)
        self._requests[request_id] = ThinkerRequest(
            request_id,
            params,
            tokens,
            reply,
            slot,
            num_cached=num_reused,
            guide=guide,
            num_reused=num_reused,
            num_prompt=num_prompt,
        )

    def feed(self, request_id: str, chunk: Chunk) -> None:
        """Raise TypeError. Never called, because `wants_chunk` is always False."""
        raise TypeError("the thinker takes no chunks")

    def end_input(self, request_id: str) -> None:
        """Do nothing: the prompt is the whole input."""

    def wants_chunk(self, request_id: str) -> bool:
        """Always False: the prompt comes with `open`."""
        return False

    def ready(self, request_id: str, credit: Credit) -> bool:
        """Whether there is credit, and the reply has not ended."""
        return credit.both > 0 and self._requests[request_id].reply.finish_reason is None

    def step(self, credit: Mapping[str, Credit]) -> Iterator[Emit]:
        """Advance up to `max_batch` requests in `credit`. Those that waited longest come first.

        If a request fails, those after it in the batch stay as they were and repeat the step.
        """
        ready = [self._requests[request_id] for request_id in credit]
        chosen = plan(ready, self.config.max_batch, self._max_step_tokens)
        if not chosen:
            return
        FIRST_SOUNDS.give_way()
        torch.set_num_threads(CORES.num_threads())  # of this thread only; takes 0.3 µs
        parts = [(request, self._segment(request, count)) for request, count in chosen]
        self._num_steps += 1
        logits = self._model.forward([segment for _, segment in parts])
        writers = [request for request, segment in parts if segment.want_logits]
        tokens = sample(logits, [_draw(request) for request in writers])
        rows = iter(zip(tokens, logits, strict=True))
        for request, segment in parts:
            row = next(rows) if segment.want_logits else None
            request.num_cached += len(segment.tokens)
            request.last_step = self._num_steps
            if row is not None:
                with as_request_error(request.request_id):
                    emits = self._write(request, *row)
                yield from emits or [Emit(request.request_id)]
            else:
                yield Emit(request.request_id)

    def close(self, request_id: str) -> None:
        """Drop the request and free its slot; the prefix cache keeps what was read."""
        request = self._requests.pop(request_id)
        if request.slot is not None:
            self._prefixes.keep(request.tokens[: request.num_cached], request.slot)
            self._cache.release(request.slot)

    def _segment(self, request: ThinkerRequest, count: int) -> Segment:
        start = request.num_cached
        with as_request_error(request.request_id):
            request.slot = self._cache.reserve(request.slot, start, len(request.tokens))
        tokens = tuple(request.tokens[start : start + count])
        return Segment(request.slot, start, tokens, want_logits=count == request.num_unread)

    def _write(self, request: ThinkerRequest, token: int, logits: Tensor) -> list[Emit]:
        """Add a token to the reply. Returns the text that can be sent, and the end if it ends."""
        num_top = request.params.num_top
        chunk = request.reply.push(
            token, None if num_top is None else self._score(logits, token, num_top)
        )
        if request.guide is not None:
            request.guide.push(token)
        request.tokens.append(token)
        emits = [Emit(request.request_id, chunk=chunk)] if chunk else []
        if reason := request.reply.finish_reason:
            num_written = request.reply.num_tokens
            end = TextEnd(reason, request.num_prompt, num_written, request.num_reused)
            emits.append(Emit(request.request_id, end=end))
        return emits

    def _score(self, logits: Tensor, token: int, num_top: int) -> TokenScore:
        logprob, top = score(logits, token, num_top)
        name = self._vocabulary.candidate
        return TokenScore(name(token, logprob), tuple(name(*candidate) for candidate in top))


def _draw(request: ThinkerRequest) -> Draw:
    sampling = request.params.sampling
    penalised = sampling.frequency_penalty or sampling.presence_penalty
    with as_request_error(request.request_id):
        allowed = None if request.guide is None else request.guide.allowed()
    written = request.written if penalised else ()
    return Draw(sampling, request.reply.num_tokens, written, allowed)
