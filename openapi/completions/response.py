"""The answer of `POST /v1/completions`, whole or as one event of a stream."""

from typing import Literal

from openapi.base import ResponseModel
from openapi.chat.usage import ChatUsage


class CompletionLogprobs(ResponseModel):
    """Parallel lists, an item for each token. `text_offset` counts characters of `text`.

    A token that is a part of a character is named by its bytes, as `bytes:\\xe2\\x80`.
    """

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class CompletionChoice(ResponseModel):
    """A text. In a stream a piece of one; `finish_reason` is null before the last piece."""

    text: str
    index: int
    logprobs: CompletionLogprobs | None
    finish_reason: Literal["stop", "length", "content_filter"] | None


class Completion(ResponseModel):
    """The choices of all prompts, those of the first prompt first."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    system_fingerprint: str
    usage: ChatUsage | None = None
