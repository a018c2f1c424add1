"""`POST /v1/completions`: the request. The model continues a prompt, without a chat template.

All other fields of OpenAI's API are ignored as unknown fields. `top_k` and `timeout_s` are
extensions of this server.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from openapi.base import RequestModel, Seed
from openapi.chat.request import LogitBias, NumChoices, Penalty, Stops, StreamOptions, as_list

Prompt = str | tuple[int, ...]


def _prompts(value: object) -> tuple[Prompt, ...]:
    """The field in any of its forms, as prompts that are each a text or token ids."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and value:
        if all(isinstance(item, str) for item in value):
            return tuple(value)
        if _are_tokens(value):
            return (tuple(value),)
        if all(isinstance(item, list) and item and _are_tokens(item) for item in value):
            return tuple(tuple(item) for item in value)
    raise PydanticCustomError(
        "prompt_type",
        "expected a string, or an array of strings, of token ids, or of arrays of token ids",
    )


def _are_tokens(items: list[object]) -> bool:
    return all(isinstance(item, int) and not isinstance(item, bool) for item in items)


Prompts = Annotated[
    tuple[Prompt, ...],
    PlainValidator(_prompts, json_schema_input_type=str | list[str] | list[int] | list[list[int]]),
]


class CompletionRequest(RequestModel):
    """Prompts to continue.

    `suffix` is refused, and so are `echo` with `logprobs` and a `best_of` greater than `n`.
    """

    model: str
    prompt: Prompts
    max_tokens: Annotated[int, Field(ge=1)] | None = 16
    n: NumChoices | None = 1
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    echo: bool | None = False
    logprobs: Annotated[int, Field(ge=0, le=5)] | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    stop: Annotated[
        Stops | None, BeforeValidator(as_list, json_schema_input_type=str | Stops | None)
    ] = None
    frequency_penalty: Penalty | None = 0.0
    presence_penalty: Penalty | None = 0.0
    logit_bias: LogitBias | None = None
    seed: Seed | None = None
    best_of: Annotated[int, Field(ge=0, le=20)] | None = None
    suffix: str | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None
