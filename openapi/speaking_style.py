"""How a text is spoken: extensions of this server, the same in speech and chat requests."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

from openapi.base import RequestModel, ResponseModel

LENGTH_SCALE = (
    "A factor for the length of every sound. The default is that of the voice. See also `speed`."
)
NOISE_SCALE = "How much the sound varies. With 0 it never varies. The default is that of the voice."
NOISE_W = "How much the rhythm varies. With 0 it never varies. The default is that of the voice."
SENTENCE_SILENCE = "Seconds of silence after each sentence, line and list item. The default is 0.2."
SPEAKER = "One of the voice's `speakers`, by name or by number from 0. The default is 0."
CLEAN = (
    "Whether markup, code and addresses are removed from the text before it is spoken. The default "
    "is a setting of the server. Numbers, dates and the like are always written out as words."
)
CAPTIONS = (
    "Whether events say which part of the text is spoken when. Offsets are in code points of the "
    "text in the request or, for a chat, of the transcript."
)


def _as_name(speaker: object) -> object:
    number = isinstance(speaker, int) and not isinstance(speaker, bool)
    return str(speaker) if number else speaker


SpeakerName = Annotated[str, BeforeValidator(_as_name, json_schema_input_type=str | int)]


class SpeakingStyle(RequestModel):
    """Base of requests for speech. None means the default of the voice or of the server.

    Unknown fields are kept for the model's family, which may have settings of its own.
    """

    model_config = ConfigDict(extra="allow")

    FAMILY_FIELDS: ClassVar[tuple[str, ...]] = (
        "length_scale",
        "noise_scale",
        "noise_w",
        "sentence_silence",
    )

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

    def family_values(self) -> dict[str, object]:
        """The fields for the model's family that are set and not at their default."""
        return {
            name: getattr(self, name)
            for name in self.FAMILY_FIELDS
            if getattr(self, name) not in (None, type(self).model_fields[name].default)
        }


class Unspoken(ResponseModel):
    """The letters of a reply that its voice cannot speak.

    `letters` is how many, `first` the position of the first one in the transcript, and `scripts`
    the names of their scripts.
    """

    letters: int
    first: int
    scripts: str


class SpokenWord(ResponseModel):
    """Code points `start` to `end` of the text, spoken from `start_s` to `end_s` in the audio."""

    start: int
    end: int
    start_s: float
    end_s: float


class SpokenPiece(ResponseModel):
    """A piece of the text that is spoken in this event's audio, and the words that start in it."""

    start: int
    end: int
    start_s: float
    end_s: float
    words: list[SpokenWord]
