"""`POST /v1/chat/completions`: the request, text in, text and speech out.

Only what changes the answer, or is refused, is listed: everything else that OpenAI defines is an
unknown field here, and ignored (`chat_parameters.py` has all of them). `top_k` and `timeout_s` are
fields of our own.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from openapi.base import FEW, MAX_ITEMS, RequestModel, Seed
from openapi.chat.message import ChatMessage
from openapi.reply_format import ResponseFormat
from openapi.speaking_style import SpeakingStyle
from openapi.voice import VoiceName

ReplyFormat = Literal["wav", "aac", "mp3", "flac", "opus", "pcm16"]
Stops = Annotated[list[str], Field(max_length=4)]
Penalty = Annotated[float, Field(ge=-2.0, le=2.0)]
LogitBias = Annotated[
    dict[str, Annotated[float, Field(ge=-100.0, le=100.0)]], Field(max_length=MAX_ITEMS)
]
NumChoices = Annotated[int, Field(ge=1, le=128)]


def as_list(stop: object) -> object:
    """One stop string as a list of it."""
    return [stop] if isinstance(stop, str) else stop


class ReplyAudio(SpeakingStyle):
    """How the reply is to sound; all but `voice` and `format` are fields of our own. pcm16 has no
    header: 24 kHz, mono, 16 bits, little endian."""

    voice: VoiceName
    format: ReplyFormat


class StreamOptions(RequestModel):
    """`include_usage` adds one last chunk with the usage and no choices."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class ChatRequest(RequestModel):
    """A chat to be answered, in text, in speech, or in both."""

    model: str
    messages: Annotated[list[ChatMessage], *FEW, Field(min_length=1)]
    modalities: Annotated[list[Literal["text", "audio"]], *FEW, Field(min_length=1)] | None = None
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
    tools: Annotated[list[dict[str, Any]], *FEW] | None = None
    tool_choice: str | dict[str, Any] | None = None
    functions: Annotated[list[dict[str, Any]], *FEW] | None = None
    function_call: str | dict[str, Any] | None = None
    response_format: ResponseFormat | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None

    @property
    def wants_audio(self) -> bool:
        """Whether the reply is to be spoken."""
        return "audio" in (self.modalities or ())

    @property
    def wants_usage(self) -> bool:
        """Whether a stream is to end with its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)
