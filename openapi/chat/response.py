"""The whole answer of `POST /v1/chat/completions`."""

from typing import Any, Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import ChoiceLogprobs
from openapi.chat.usage import ChatUsage
from openapi.speaking_style import SpokenPiece, Unspoken

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class SpokenReply(ResponseModel):
    """The reply as sound: `data` is base64 in the format that was asked for.

    `captions` are there where they are wanted, `unspoken` where the voice could not speak some of
    the transcript.
    """

    id: str
    data: str
    expires_at: int
    transcript: str
    captions: list[SpokenPiece] | None = None
    unspoken: Unspoken | None = None


class ReplyMessage(ResponseModel):
    """The reply. `content` is null where it is spoken; its text is then the transcript."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    audio: SpokenReply | None = None
    annotations: list[dict[str, Any]]


class Choice(ResponseModel):
    """One answer, of the `n` that were asked for."""

    index: int
    message: ReplyMessage
    logprobs: ChoiceLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(ResponseModel):
    """The answer and what it counts as."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    service_tier: Literal["default"]
    system_fingerprint: str
