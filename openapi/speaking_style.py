"""How a text is spoken: fields of our own, the same wherever something is spoken."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from openapi.base import RequestModel, ResponseModel

LENGTH_SCALE = (
    "What every sound's length is multiplied by; the voice has its own. See also `speed`."
)
NOISE_SCALE = "How much the sound varies; 0 is always the same. The voice has its own."
NOISE_W = "How much the rhythm varies; 0 is always the same. The voice has its own."
SENTENCE_SILENCE = "Seconds of silence after each sentence, line and list item; 0.2 if not given."
SPEAKER = "One of the voice's `speakers`, by name or by number, where it has several."
CLEAN = (
    "Whether markup, code and addresses are taken out of the text before it is spoken; as the "
    "server is set if not given. Numbers, dates and the like are written out either way."
)
CAPTIONS = (
    "Whether events say which part of the text is heard when. Offsets are in code points of the "
    "text that was sent, or that was written."
)


def _as_name(speaker: object) -> object:
    number = isinstance(speaker, int) and not isinstance(speaker, bool)
    return str(speaker) if number else speaker


SpeakerName = Annotated[str, BeforeValidator(_as_name, json_schema_input_type=str | int)]


class SpeakingStyle(RequestModel):
    """Base of what asks for speech. None: as the voice or the server has it."""

    length_scale: Annotated[
        Annotated[float, Field(ge=0.1, le=10.0)] | None, Field(description=LENGTH_SCALE)
    ] = None
    noise_scale: Annotated[
        Annotated[float, Field(ge=0.0, le=2.0)] | None, Field(description=NOISE_SCALE)
    ] = None
    noise_w: Annotated[
        Annotated[float, Field(ge=0.0, le=2.0)] | None, Field(description=NOISE_W)
    ] = None
    sentence_silence: Annotated[
        Annotated[float, Field(ge=0.0, le=10.0)] | None, Field(description=SENTENCE_SILENCE)
    ] = None
    speaker: Annotated[SpeakerName | None, Field(description=SPEAKER)] = None
    clean: Annotated[bool | None, Field(description=CLEAN)] = None
    captions: Annotated[bool | None, Field(description=CAPTIONS)] = False


class Unspoken(ResponseModel):
    """Letters of a reply that its voice cannot speak: how many, where in the transcript the first
    is, and of which scripts."""

    letters: int
    first: int
    scripts: str


class SpokenWord(ResponseModel):
    """Code points `start` to `end` of the text are heard from `start_s` to `end_s` of the sound."""

    start: int
    end: int
    start_s: float
    end_s: float


class SpokenPiece(ResponseModel):
    """A piece that is heard in this event's sound, and the words that begin in it."""

    start: int
    end: int
    start_s: float
    end_s: float
    words: list[SpokenWord]
