"""Checks a completion request and turns it into what the thinker runs.

Choice `i * n + j` is the `j`-th choice of prompt `i`. Each prompt starts from the same seed, so its
choices are the same as if it were sent alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from openapi.problems import Problem, unsupported
from server.errors import RefusedError
from server.operations.shared.plan import Plan, deadline_of
from server.operations.shared.seed import choice_seed
from server.operations.shared.text_options import (
    chat_pipeline_of,
    check_num_choices,
    reply_limit,
    sampling_with_penalties,
    stop_strings,
    text_model_of,
    wants_usage,
)
from stages.contract.messages import RawPrompt, Request, Sampling, ThinkerParams

if TYPE_CHECKING:
    from openapi.completions.request import CompletionRequest
    from server.serving.service import Service
    from stages.contract.model import ChatPrompts

DEFAULT_MAX_TOKENS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionPlan(Plan):
    """Checked prompts, with `num_per_prompt` requests for each of them.

    `echoes` has the text that each choice repeats before its own.
    """

    include_usage: bool
    num_per_prompt: int
    echoes: tuple[str, ...]


async def plan_completion(service: Service, body: CompletionRequest) -> CompletionPlan:
    """Check a request and plan it. Raises RefusedError, UnavailableError."""
    served, prompts = text_model_of(service, body.model, "v1/completions")
    include_usage = wants_usage(body)
    _check_options(body)
    num_per_prompt = body.n or 1
    max_running = service.admission.max_running
    check_num_choices(num_per_prompt, "n", max_running)
    check_num_choices(num_per_prompt * len(body.prompt), "prompt", max_running)
    sampling = sampling_with_penalties(body, prompts)
    samplings = [
        replace(sampling, seed=choice_seed(sampling.seed, j)) for j in range(num_per_prompt)
    ]
    raw_prompts = [RawPrompt(content) for content in body.prompt]
    lengths = await anyio.to_thread.run_sync(_lengths, raw_prompts, prompts)
    limits = [
        reply_limit(body.max_tokens, length, prompts, "prompt", DEFAULT_MAX_TOKENS)
        for length in lengths
    ]
    return CompletionPlan(
        served=served,
        pipeline=chat_pipeline_of(served),
        requests=tuple(
            _request(body, prompt, sampling, limit)
            for prompt, limit in zip(raw_prompts, limits, strict=True)
            for sampling in samplings
        ),
        stream=bool(body.stream),
        deadline_s=deadline_of(body.timeout_s, service.settings),
        include_usage=include_usage,
        num_per_prompt=num_per_prompt,
        echoes=tuple(
            _echo(body, prompt, prompts) for prompt in raw_prompts for _ in range(num_per_prompt)
        ),
    )


def _check_options(body: CompletionRequest) -> None:
    if (body.best_of or 1) not in (1, body.n):
        message = "Unsupported value: 'best_of' must be 1 or equal to 'n'."
        raise RefusedError(unsupported("best_of", message))
    if body.suffix:
        message = "Unsupported parameter: 'suffix': this model cannot insert text before a suffix."
        raise RefusedError(unsupported("suffix", message))
    if body.echo and body.logprobs is not None:
        message = (
            "Unsupported value: 'echo' cannot be combined with 'logprobs': "
            "the tokens of the prompt have no log probabilities."
        )
        raise RefusedError(unsupported("echo", message))


def _lengths(raw_prompts: list[RawPrompt], prompts: ChatPrompts) -> list[int]:
    return [_length(prompt, prompts) for prompt in raw_prompts]


def _length(prompt: RawPrompt, prompts: ChatPrompts) -> int:
    """The number of tokens. Refuses an empty prompt, and ids that the model does not have."""
    tokens = prompts.tokenize(prompt)
    if not tokens:
        message = "Invalid 'prompt': it must not be empty."
        raise RefusedError(Problem(message, "prompt", "invalid_value"))
    if not (min(tokens) >= 0 and max(tokens) < prompts.num_tokens):
        message = (
            "Invalid 'prompt': each token must be a token id of this model, "
            f"from 0 to {prompts.num_tokens - 1}."
        )
        raise RefusedError(Problem(message, "prompt", "invalid_value"))
    return len(tokens)


def _request(body: CompletionRequest, prompt: RawPrompt, sampling: Sampling, limit: int) -> Request:
    stop = stop_strings(body.stop)
    return Request((ThinkerParams(prompt, sampling, limit, stop, body.logprobs),))


def _echo(body: CompletionRequest, prompt: RawPrompt, prompts: ChatPrompts) -> str:
    if not body.echo:
        return ""
    content = prompt.content
    return content if isinstance(content, str) else prompts.decode(content)
