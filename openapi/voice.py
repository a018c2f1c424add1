"""A voice as requests name it, by name or as `{"id": name}`, and as the list of voices shows it."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from openapi.base import RequestModel, ResponseModel


class VoiceId(RequestModel):
    """The object form of a voice."""

    id: str


def _name_of(voice: object) -> object:
    return voice.get("id", voice) if isinstance(voice, dict) else voice


VoiceName = Annotated[str, BeforeValidator(_name_of, json_schema_input_type=str | VoiceId)]


class Voice(ResponseModel):
    """One voice. `aliases` are other names under which it is accepted; `speakers` are there where
    it has several, and `license` where its model card names one."""

    id: str
    name: str
    object: Literal["audio.voice"]
    created_at: int
    language: str
    quality: str | None
    sample_rate: int | None
    speakers: list[str]
    license: str | None
    models: list[str]
    aliases: list[str]


class VoiceList(ResponseModel):
    """The list under the two names by which clients look for it."""

    object: Literal["list"]
    voices: list[Voice]
    data: list[Voice]
