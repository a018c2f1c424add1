"""`POST /v1/audio/speech`: the request, and the events of `stream_format: "sse"`.

`seed`, `language`, `timeout_s` and the fields of `SpeakingStyle` are extensions of this server.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from openapi.base import ResponseModel, Seed
from openapi.speaking_style import SpeakingStyle, SpokenPiece
from openapi.voice import VoiceName

EXAMPLE: JsonDict = {
    "model": "tts-1",
    "input": "Hello.",
    "voice": "alloy",
    "response_format": "mp3",
    "stream_format": "audio",
}
INPUT = (
    "The text. At most 4096 code points if `model` is a name of OpenAI's models; otherwise the "
    "limit is a setting of the server. It must contain something to speak."
)
INSTRUCTIONS = (
    "How to speak, or a description of the voice. Qwen3-TTS CustomVoice (1.7B) and VoiceDesign "
    "follow it. Other models ignore it, as OpenAI's tts-1 does."
)

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


class SpeechRequest(SpeakingStyle):
    """What to speak, and how."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    FAMILY_FIELDS = (*SpeakingStyle.FAMILY_FIELDS, "speed", "language", "instructions")

    model: str
    input: Annotated[str, Field(description=INPUT)]
    voice: VoiceName
    instructions: Annotated[
        Annotated[str, Field(max_length=4096)] | None, Field(description=INSTRUCTIONS)
    ] = None
    response_format: SpeechFormat | None = "mp3"
    speed: Annotated[float, Field(ge=0.25, le=4.0)] | None = 1.0
    stream_format: Literal["sse", "audio"] | None = "audio"
    seed: Seed | None = None
    language: str | None = None
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None


class SpeechUsage(ResponseModel):
    """The usage of a speech. The total is the sum."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class SpeechDelta(ResponseModel):
    """A part of the audio file, in base64. The parts of all events joined are the file.

    `captions`, if requested, say what is spoken in the audio since the previous event.
    """

    type: Literal["speech.audio.delta"]
    audio: str
    captions: list[SpokenPiece] | None = None


class SpeechDone(ResponseModel):
    """The last event before `[DONE]`."""

    type: Literal["speech.audio.done"]
    usage: SpeechUsage
