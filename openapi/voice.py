"""Voices: how requests name them, how they are listed, and how they are uploaded."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from openapi.base import RequestModel, ResponseModel

VOICE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TRANSCRIPT = (
    "The exact words of the recording. With them, the speech continues the recording. Without "
    "them, only the sound of the voice is copied."
)
CONSENT = "Ignored. OpenAI's clients send it."


class VoiceId(RequestModel):
    """A voice by its id, which is the same as its name."""

    id: str


def _name_of(voice: object) -> object:
    return voice.get("id", voice) if isinstance(voice, dict) else voice


VoiceName = Annotated[str, BeforeValidator(_name_of, json_schema_input_type=str | VoiceId)]


class Voice(ResponseModel):
    """One voice. `languages` are the languages that it speaks, `aliases` its other names.

    `speakers` is empty if the voice has only one speaker. `license` is null if the model card names
    none.
    """

    id: str
    name: str
    object: Literal["audio.voice"]
    created_at: int
    language: str
    languages: list[str]
    quality: str | None
    sample_rate: int | None
    speakers: list[str]
    license: str | None
    models: list[str]
    aliases: list[str]


class VoiceUpload(RequestModel):
    """A voice to clone. The file `audio_sample` is uploaded with it. `language` is a BCP 47 tag."""

    name: Annotated[str, Field(pattern=VOICE_NAME, description="A name that no voice has yet.")]
    transcript: Annotated[
        Annotated[str, Field(max_length=4096)] | None, Field(description=TRANSCRIPT)
    ] = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*$")] | None = None
    consent: Annotated[str | None, Field(description=CONSENT)] = None


class CreatedVoice(ResponseModel):
    """An uploaded voice. Requests use its id, which is the same as its name."""

    object: Literal["audio.voice"]
    id: str
    name: str
    created_at: int


class DeletedVoice(ResponseModel):
    """A voice that was deleted."""

    object: Literal["audio.voice.deleted"]
    id: str
    deleted: Literal[True]


class VoiceList(ResponseModel):
    """All voices. `voices` and `data` are the same list, as clients look for either name."""

    object: Literal["list"]
    voices: list[Voice]
    data: list[Voice]
