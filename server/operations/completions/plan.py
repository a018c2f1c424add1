"""A request for completions, checked, as what the thinker runs. Choice `i * n + j` is the j-th of
prompt `i`; with one seed for all prompts, each prompt has the answers that it would have alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio

from openapi.problems import Problem, unsupported
from server.errors import RefusedError
from server.operations.shared.seed import seed_of
from server.operations.shared.text_options import (
    DEFAULT_TEMPERATURE,
    bias_of,
    check_places,
    check_stops,
    reply_limit,
    seed_after,
    writer_of,
)
from stages.contract.messages import Request, Sampling, ThinkerParams

if TYPE_CHECKING:
    from openapi.completions.request import CompletionRequest, Prompt
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.pipeline import ChatPrompts

DEFAULT_MAX_TOKENS = 16


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """Requests that nothing is wrong with. `echoes`: the text that each choice begins with."""

    served: ServedModel
    requests: tuple[Request, ...]
    per_prompt: int
    echoes: tuple[str, ...]
    stream: bool
    include_usage: bool
    deadline_s: float


async def plan_completion(service: Service, body: CompletionRequest) -> CompletionPlan:
    """Check everything that can be checked. Raises RefusedError, UnavailableError."""
    served, prompts = writer_of(service, body.model, "v1/completions")
    settings = service.settings
    _check_options(body)
    per_prompt = body.n or 1
    check_places(per_prompt, "n", service.admission.max_running)
    check_places(per_prompt * len(body.prompt), "prompt", service.admission.max_running)
    sampling = _sampling(body, prompts)
    token_lists = await anyio.to_thread.run_sync(_token_lists, body, prompts)
    requests = [
        _request(body, tokens, replace(sampling, seed=seed_after(sampling.seed, j)), prompts)
        for tokens in token_lists
        for j in range(per_prompt)
    ]
    echoes = [_echo(body, prompt, prompts) for prompt in body.prompt for _ in range(per_prompt)]
    return CompletionPlan(
        served,
        tuple(requests),
        per_prompt,
        tuple(echoes),
        bool(body.stream),
        body.stream_options is not None and bool(body.stream_options.include_usage),
        min(body.timeout_s or settings.deadline_s, settings.deadline_s),
    )


def _check_options(body: CompletionRequest) -> None:
    if body.stream_options is not None and not body.stream:
        message = "'stream_options' is only allowed with 'stream'."
        raise RefusedError(Problem(message, "stream_options"))
    if (body.best_of or 1) not in (1, body.n):
        message = "Unsupported value: 'best_of' must be 1, or 'n': no choice is left out."
        raise RefusedError(unsupported("best_of", message))
    if body.suffix:
        message = "Unsupported parameter: 'suffix': this model does not fill in text."
        raise RefusedError(unsupported("suffix", message))
    if body.echo and body.logprobs is not None:
        message = "Unsupported value: 'echo' with 'logprobs': a prompt's tokens are not scored."
        raise RefusedError(unsupported("echo", message))


def _token_lists(body: CompletionRequest, prompts: ChatPrompts) -> list[tuple[int, ...]]:
    return [_tokens(prompt, prompts) for prompt in body.prompt]


def _tokens(prompt: Prompt, prompts: ChatPrompts) -> tuple[int, ...]:
    tokens = prompts.encode(prompt) if isinstance(prompt, str) else prompt
    if not tokens:
        raise RefusedError(Problem("Invalid 'prompt': it is empty.", "prompt", "invalid_value"))
    if not (min(tokens) >= 0 and max(tokens) < prompts.num_tokens):
        message = (
            "Invalid 'prompt': it has a token that this model does not know. "
            f"Its tokens are numbered from 0 to {prompts.num_tokens - 1}."
        )
        raise RefusedError(Problem(message, "prompt", "invalid_value"))
    return tokens


def _request(
    body: CompletionRequest, tokens: tuple[int, ...], sampling: Sampling, prompts: ChatPrompts
) -> Request:
    limit = reply_limit(body.max_tokens, len(tokens), prompts, "prompt", DEFAULT_MAX_TOKENS)
    return Request((ThinkerParams(tokens, sampling, limit, check_stops(body.stop), body.logprobs),))


def _sampling(body: CompletionRequest, prompts: ChatPrompts) -> Sampling:
    return Sampling(
        seed=seed_of(body.seed),
        temperature=DEFAULT_TEMPERATURE if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=body.top_k or 0,
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        bias=bias_of(body.logit_bias, prompts),
    )


def _echo(body: CompletionRequest, prompt: Prompt, prompts: ChatPrompts) -> str:
    if not body.echo:
        return ""
    return prompt if isinstance(prompt, str) else prompts.decode(prompt)
