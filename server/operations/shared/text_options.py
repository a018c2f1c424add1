"""Checks that all requests to a text model share, whatever their endpoint.

Each check raises RefusedError, which names the field at fault.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from openapi.problems import Problem, missing, unsupported
from server.errors import RefusedError
from server.operations.shared.seed import seed_of
from stages.contract.messages import Sampling
from stages.contract.pipeline import TEXT_ONLY, Medium

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openapi.chat.request import ChatRequest
    from openapi.completions.request import CompletionRequest
    from openapi.reply_format import FormatType
    from openapi.responses.request import ResponseRequest
    from server.serving.served import ServedModel, ServedPipeline
    from server.serving.service import Service
    from stages.contract.model import ChatPrompts

DEFAULT_TEMPERATURE = 0.2  # a small model rambles at a higher one
MAX_TOKEN_DIGITS = 9
MAX_SCHEMA_CHARS = 64 * 1024
ANY_OBJECT = '{"type":"object"}'


def text_model_of(service: Service, name: str, endpoint: str) -> tuple[ServedModel, ChatPrompts]:
    """The text model `name`, and its tokenizer. Also raises UnavailableError."""
    served = service.model(name)
    if (prompts := served.model.prompts) is None:
        message = f"The model '{name}' only speaks; it is not supported in {endpoint}."
        raise RefusedError(Problem(message, "model", "model_not_supported"))
    return served, prompts


def chat_pipeline_of(served: ServedModel, outputs: frozenset[Medium] = TEXT_ONLY) -> ServedPipeline:
    """The pipeline for a reply in text, or in text and audio, where the model has one."""
    pipeline = served.pipeline(Medium.TEXT, outputs)
    assert pipeline is not None  # checked: a model with prompts writes text
    return pipeline


def check_num_choices(num_choices: int, param: str, max_running: int) -> None:
    """Refuse a call that admission could never start: all its choices run at the same time."""
    if num_choices > max_running:
        message = (
            f"Invalid '{param}': this server runs at most {max_running} choices at once, "
            f"but {num_choices} were requested."
        )
        raise RefusedError(Problem(message, param, "number_above_max_value"))


def wants_usage(body: ChatRequest | CompletionRequest) -> bool:
    """Whether a stream ends with its usage. Refuses `stream_options` without `stream`."""
    if body.stream_options is None:
        return False
    if not body.stream:
        message = "'stream_options' is only allowed with 'stream'."
        raise RefusedError(Problem(message, "stream_options"))
    return bool(body.stream_options.include_usage)


def stop_strings(requested: Sequence[str] | None) -> tuple[str, ...]:
    """The stop strings. Refuses empty ones."""
    if "" in (requested or ()):
        message = "Invalid 'stop': a stop sequence must not be empty."
        raise RefusedError(Problem(message, "stop", "invalid_value"))
    return tuple(requested or ())


def sampling_of(body: ChatRequest | CompletionRequest | ResponseRequest) -> Sampling:
    """The sampling parameters that all three endpoints have."""
    return Sampling(
        seed=seed_of(body.seed),
        temperature=DEFAULT_TEMPERATURE if body.temperature is None else body.temperature,
        top_p=1.0 if body.top_p is None else body.top_p,
        top_k=body.top_k or 0,
    )


def sampling_with_penalties(
    body: ChatRequest | CompletionRequest, prompts: ChatPrompts
) -> Sampling:
    """`sampling_of` with the penalties and the bias of the request."""
    return replace(
        sampling_of(body),
        frequency_penalty=body.frequency_penalty or 0.0,
        presence_penalty=body.presence_penalty or 0.0,
        bias=_logit_bias(body.logit_bias, prompts),
    )


def _logit_bias(
    requested: Mapping[str, float] | None, prompts: ChatPrompts
) -> tuple[tuple[int, float], ...]:
    """Pairs of a token id and its bias."""
    return tuple((_token_id(key, prompts), float(bias)) for key, bias in (requested or {}).items())


def _token_id(key: str, prompts: ChatPrompts) -> int:
    is_number = key.isascii() and key.isdigit() and len(key) <= MAX_TOKEN_DIGITS
    if is_number and int(key) < prompts.num_tokens:
        return int(key)
    message = (
        "Invalid 'logit_bias': each key must be a token id of this model, "
        f"from 0 to {prompts.num_tokens - 1}."
    )
    raise RefusedError(Problem(message, "logit_bias", "invalid_value"))


def reply_limit(
    requested: int | None, num_prompt_tokens: int, prompts: ChatPrompts, param: str, default: int
) -> int:
    """How many tokens a reply may have. Refuses a prompt that fills the context.

    `param` is the field that holds the prompt.
    """
    num_left = prompts.context_tokens - num_prompt_tokens
    if num_left > 0:
        return min(requested or default, num_left)
    message = (
        f"This model's maximum context length is {prompts.context_tokens} tokens. However, your "
        f"{param} resulted in {num_prompt_tokens} tokens. Please shorten the {param}."
    )
    raise RefusedError(Problem(message, param, "context_length_exceeded"))


async def schema_of(
    kind: FormatType, schema: Mapping[str, object] | None, param: str, prompts: ChatPrompts
) -> str | None:
    """The JSON schema that the reply must match, as text. None if any text is allowed."""
    if kind == "text":
        return None
    if kind == "json_object":
        return ANY_OBJECT
    if schema is None:
        raise RefusedError(missing(param))
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA_CHARS:
        message = f"Invalid '{param}': the schema is longer than {MAX_SCHEMA_CHARS} characters."
        raise RefusedError(Problem(message, param, "string_above_max_length"))
    try:
        await anyio.to_thread.run_sync(prompts.check_schema, text)
    except ValueError as error:
        message = f"Invalid schema for '{param}': {str(error)[:200]}."
        raise RefusedError(Problem(message, param, "invalid_json_schema")) from None
    return text


def refuse_tools(tools: object, choice: object, param: str, choice_param: str) -> None:
    """Refuse tools: no model here can call them. Tools with the choice `none` are ignored."""
    if tools and choice != "none":
        message = (
            f"Unsupported parameter: '{param}': this model does not call tools. "
            f'Remove it, or set "{choice_param}" to "none".'
        )
        raise RefusedError(unsupported(param, message))
    if choice not in (None, "none", "auto"):
        message = (
            f'Unsupported value: \'{choice_param}\' must be "none" or "auto": '
            "this model does not call tools."
        )
        raise RefusedError(unsupported(choice_param, message))
