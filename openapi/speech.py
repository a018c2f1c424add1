"""`POST /v1/audio/speech`: the request, and the events of `stream_format: "sse"`.

`seed`, `language`, `noise_scale`, `noise_w` and `timeout_s` are fields of our own.
"""

from typing import Annotated, Literal

from pydantic import Field

from openapi.base import RequestModel, ResponseModel, Seed
from openapi.voice import VoiceName

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


class SpeechRequest(RequestModel):
    """What to speak, and how. How long `input` may be is a setting of the server."""

    model: str
    input: str
    voice: VoiceName
    instructions: Annotated[str, Field(max_length=4096)] | None = None
    response_format: SpeechFormat | None = "mp3"
    speed: Annotated[float, Field(ge=0.25, le=4.0)] | None = 1.0
    stream_format: Literal["sse", "audio"] | None = "audio"
    seed: Seed | None = None
    language: str | None = None
    noise_scale: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    noise_w: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None


class SpeechUsage(ResponseModel):
    """What a speech counts as; the total is the sum."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class SpeechDelta(ResponseModel):
    """A piece of the file, in base64; all pieces joined are the file."""

    type: Literal["speech.audio.delta"]
    audio: str


class SpeechDone(ResponseModel):
    """The last event before `[DONE]`."""

    type: Literal["speech.audio.done"]
    usage: SpeechUsage
