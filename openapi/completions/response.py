"""The response of `POST /v1/completions`, and each event of its stream."""

from typing import Literal

from openapi.base import ResponseModel
from openapi.chat.usage import ChatUsage


class CompletionLogprobs(ResponseModel):
    """Parallel lists with one item for each token. `text_offset` counts characters of `text`.

    A token that is only a part of a character is named by its bytes, as `bytes:\\xe2\\x80`.
    """

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CompletionChoice(ResponseModel):
    """A text, or in a stream a part of it. `finish_reason` is null before the last part."""

    text: str
    index: int
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length", "content_filter"] | None


class Completion(ResponseModel):
    """The choices of all prompts, in the order of the prompts."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    system_fingerprint: str
    usage: ChatUsage | None = None
