"""`POST /v1/chat/completions`: the request. Text in, text and speech out.

It has the fields that change the reply and the fields that are refused. All other fields of
OpenAI's API are ignored as unknown fields; `parameters.py` lists them. `top_k` and `timeout_s` are
extensions of this server.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from openapi.base import LIST_LIMITS, MAX_LIST_ITEMS, RequestModel, Seed
from openapi.chat.message import ChatMessage
from openapi.reply_format import ResponseFormat
from openapi.speaking_style import SpeakingStyle
from openapi.voice import VoiceName

ReplyFormat = Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
Stops = Annotated[list[str], Field(max_length=4)]
Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
LogitBias = Annotated[
    dict[str, Annotated[float, Field(ge=-100.0, le=100.0)]], Field(max_length=MAX_LIST_ITEMS)
]
NumChoices = Annotated[int, Field(ge=1, le=128)]


def as_list(stop: object) -> object:
    """A single string as a list with one item."""
    return [stop] if isinstance(stop, str) else stop


class ReplyAudio(SpeakingStyle):
    """How the reply is spoken. All fields but `voice` and `format` are extensions of this server.

    `pcm16` is 24 kHz, mono, 16 bits, little endian, without a header.
    """

    voice: VoiceName
    format: ReplyFormat


class StreamOptions(RequestModel):
    """`include_usage` adds a last chunk, with the usage and without choices."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(RequestModel):
    """A chat that needs a reply in text, in speech, or in both."""

    model: str
    messages: Annotated[list[ChatMessage], *LIST_LIMITS, Field(min_length=1)]
    modalities: (
        Annotated[list[Literal["text", "audio"]], *LIST_LIMITS, Field(min_length=1)] | None
    ) = None
    audio: ReplyAudio | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: NumChoices | None = 1
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: Annotated[
        Stops | None, BeforeValidator(as_list, json_schema_input_type=str | Stops | None)
    ] = None
    frequency_penalty: Penalty | None = 0.0
    presence_penalty: Penalty | None = 0.0
    logprobs: bool | None = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    logit_bias: LogitBias | None = None
    seed: Seed | None = None
    tools: Annotated[list[dict[str, Any]], *LIST_LIMITS] | None = None
    tool_choice: str | dict[str, Any] | None = None
    functions: Annotated[list[dict[str, Any]], *LIST_LIMITS] | None = None
    function_call: str | dict[str, Any] | None = None
    response_format: ResponseFormat | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None

    @property
    def wants_audio(self) -> bool:
        """Whether the reply is spoken."""
        return "audio" in (self.modalities or ())
