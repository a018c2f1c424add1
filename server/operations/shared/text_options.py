"""What is checked alike of every request to a model that writes, whatever its URL.

Each check raises RefusedError naming the field at fault.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio

from openapi.problems import Problem, missing, unsupported
from server.errors import RefusedError
from server.operations.shared.seed import SEED_MASK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openapi.reply_format import FormatType
    from server.serving.served import ServedModel
    from server.serving.service import Service
    from stages.contract.pipeline import ChatPrompts

DEFAULT_TEMPERATURE = 0.2  # a small model; hotter, it rambles
MAX_TOKEN_DIGITS = 9
MAX_SCHEMA_CHARS = 64 * 1024
ANY_OBJECT = '{"type":"object"}'


def writer_of(service: Service, name: str, url: str) -> tuple[ServedModel, ChatPrompts]:
    """A model that writes, and what is known of its tokens. Also raises UnavailableError."""
    served = service.model(name)
    if (prompts := served.pipeline.prompts) is None:
        message = f"The model '{name}' only speaks; it is not supported in {url}."
        raise RefusedError(Problem(message, "model", "model_not_supported"))
    return served, prompts


def check_places(places: int, param: str, max_running: int) -> None:
    """Refuse what could never be admitted: all choices of a request run at the same time."""
    if places > max_running:
        message = (
            f"Invalid '{param}': this server runs at most {max_running} choices at once, "
            f"but {places} were asked for."
        )
        raise RefusedError(Problem(message, param, "number_above_max_value"))


def check_stops(stops: Sequence[str] | None) -> tuple[str, ...]:
    """The stop strings, none of them empty."""
    if "" in (stops or ()):
        raise RefusedError(
            Problem("Invalid 'stop': a stop sequence is empty.", "stop", "invalid_value")
        )
    return tuple(stops or ())


def seed_after(seed: int, index: int) -> int:
    """The seed of choice `index`: they are counted up from the one that was given."""
    return (seed + index) & SEED_MASK


def bias_of(
    asked: Mapping[str, float] | None, prompts: ChatPrompts
) -> tuple[tuple[int, float], ...]:
    """Pairs of a token and its bias."""
    return tuple((_token_of(name, prompts), float(value)) for name, value in (asked or {}).items())


def _token_of(name: str, prompts: ChatPrompts) -> int:
    is_number = name.isascii() and name.isdigit() and len(name) <= MAX_TOKEN_DIGITS
    if is_number and int(name) < prompts.num_tokens:
        return int(name)
    message = (
        "Invalid 'logit_bias': a key is no token of this model. "
        f"Its tokens are numbered from 0 to {prompts.num_tokens - 1}."
    )
    raise RefusedError(Problem(message, "logit_bias", "invalid_value"))


def reply_limit(
    asked: int | None, num_prompt_tokens: int, prompts: ChatPrompts, param: str, default: int
) -> int:
    """How many tokens a reply may have. Raises where the prompt in `param` leaves no room."""
    room = prompts.context_tokens - num_prompt_tokens
    if room > 0:
        return min(asked or default, room)
    message = (
        f"This model's maximum context length is {prompts.context_tokens} tokens. However, your "
        f"{param} resulted in {num_prompt_tokens} tokens. Please shorten the {param}."
    )
    raise RefusedError(Problem(message, param, "context_length_exceeded"))


async def schema_of(
    kind: FormatType, schema: Mapping[str, object] | None, param: str, prompts: ChatPrompts
) -> str | None:
    """The JSON schema that a reply is to be kept to, as text; None for any text."""
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
    """No model here has tools in its template. `none` allows them, for then none is called."""
    if tools and choice != "none":
        message = f"Unsupported parameter: '{param}': this model does not call tools."
        raise RefusedError(unsupported(param, f'{message} Pass "{choice_param}": "none" to go on.'))
    if choice not in (None, "none", "auto"):
        message = f"Unsupported value: '{choice_param}': there are no tools to choose from."
        raise RefusedError(unsupported(choice_param, message))
