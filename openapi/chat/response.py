"""The response of `POST /v1/chat/completions` that is not streamed."""

from typing import Any, Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import ChoiceLogprobs
from openapi.chat.usage import ChatUsage
from openapi.speaking_style import SpokenPiece, Unspoken

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


class SpokenReply(ResponseModel):
    """The spoken reply. `data` is base64 of an audio file in the requested format.

    `captions` is present if requested. `unspoken` is present if the voice could not speak some
    letters of the transcript.
    """

    id: str
    data: str
    expires_at: int
    transcript: str
    captions: list[SpokenPiece] | None = None
    unspoken: Unspoken | None = None


class ReplyMessage(ResponseModel):
    """The reply. If it is spoken, `content` is null and `audio.transcript` has the text."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    audio: SpokenReply | None = None
    annotations: list[dict[str, Any]]


class Choice(ResponseModel):
    """One of the `n` requested replies."""

    index: int
    message: ReplyMessage
    logprobs: ChoiceLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(ResponseModel):
    """The choices and their usage."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: ChatUsage
    service_tier: Literal["default"]
    system_fingerprint: str
