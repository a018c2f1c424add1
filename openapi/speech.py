"""`POST /v1/audio/speech`: the request, and the events of `stream_format: "sse"`.

`seed`, `language`, `timeout_s` and what `SpeakingStyle` has are fields of our own.
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
    "The text. At most 4096 code points under the names of OpenAI's models, else as many as the "
    "server is set to. There must be something to speak in it."
)
INSTRUCTIONS = (
    "How to speak, or the voice that is to speak, for models that follow it: Qwen3-TTS CustomVoice "
    "(1.7B) and VoiceDesign. Others take it without effect, as OpenAI's tts-1 does."
)

SpeechFormat = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]


class SpeechRequest(SpeakingStyle):
    """What to speak, and how."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

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
    """What a speech counts as; the total is the sum."""

    input_tokens: int
    output_tokens: int
    total_tokens: int


class SpeechDelta(ResponseModel):
    """A piece of the file, in base64; all pieces joined are the file. `captions`, where they are
    wanted: what is heard in the sound that was made since the event before."""

    type: Literal["speech.audio.delta"]
    audio: str
    captions: list[SpokenPiece] | None = None


class SpeechDone(ResponseModel):
    """The last event before `[DONE]`."""

    type: Literal["speech.audio.done"]
    usage: SpeechUsage
