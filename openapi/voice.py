"""A voice as requests name it, by name or as `{"id": name}`, and as the list of voices shows it."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from openapi.base import RequestModel, ResponseModel

VOICE_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
TRANSCRIPT = (
    "What is said in the recording, word by word. With it the speech goes on from the recording; "
    "without it only the voice's sound is taken over."
)
CONSENT = "Taken, as OpenAI's clients send it, and not looked at."


class VoiceId(RequestModel):
    """The object form of a voice."""

    id: str


def _name_of(voice: object) -> object:
    return voice.get("id", voice) if isinstance(voice, dict) else voice


VoiceName = Annotated[str, BeforeValidator(_name_of, json_schema_input_type=str | VoiceId)]


class Voice(ResponseModel):
    """One voice. `languages` are those that it speaks. `aliases` are other names under which it is
    accepted; `speakers` are there where it has several, and `license` where its model card names
    one."""

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
    """A voice to be copied, beside the file `audio_sample`. `language` is a BCP 47 tag."""

    name: Annotated[str, Field(pattern=VOICE_NAME, description="A name that nobody has yet.")]
    transcript: Annotated[
        Annotated[str, Field(max_length=4096)] | None, Field(description=TRANSCRIPT)
    ] = None
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]+)*$")] | None = None
    consent: Annotated[str | None, Field(description=CONSENT)] = None


class CreatedVoice(ResponseModel):
    """A voice that was added; it is asked for by its id, which is its name."""

    object: Literal["audio.voice"]
    id: str
    name: str
    created_at: int


class DeletedVoice(ResponseModel):
    """A voice that was removed."""

    object: Literal["audio.voice.deleted"]
    id: str
    deleted: Literal[True]


class VoiceList(ResponseModel):
    """The list under the two names by which clients look for it."""

    object: Literal["list"]
    voices: list[Voice]
    data: list[Voice]
