"""Voices by name. OpenAI's names are taken too, and mean the default voice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openapi.problems import Problem
from server.errors import RefusedError

if TYPE_CHECKING:
    from stages.contract.pipeline import Pipeline, VoiceSpec

OPENAI_VOICES = (
    "alloy",
    "ash",
    "ballad",
    "cedar",
    "coral",
    "echo",
    "fable",
    "marin",
    "nova",
    "onyx",
    "sage",
    "shimmer",
    "verse",
)


NOTHING_TO_SPEAK = Problem(
    "Invalid 'input': there is nothing to speak in it.", "input", "invalid_value"
)


@dataclass(frozen=True, slots=True)
class Voices:
    """The voices of one model. `default` is one of them."""

    known: tuple[VoiceSpec, ...]
    default: str

    def aliases(self, name: str) -> tuple[str, ...]:
        """Other names of a voice that are no voices of their own."""
        own = {voice.name for voice in self.known}
        return tuple(a for a in OPENAI_VOICES if a not in own) if name == self.default else ()

    def resolve(self, asked: str, param: str) -> VoiceSpec:
        """The voice that a request means. Raises RefusedError with the names that there are.

        What was asked for is not repeated, so that a path and a name are answered alike.
        """
        name = self.default if asked in self.aliases(self.default) else asked
        for voice in self.known:
            if voice.name == name:
                return voice
        names = ", ".join(f"'{voice.name}'" for voice in self.known)
        others = ", ".join(f"'{alias}'" for alias in self.aliases(self.default))
        message = f"There is no such voice. Voices: {names}. Names for the default: {others}."
        raise RefusedError(Problem(message, param, "voice_not_found"))


def voices_of(known: tuple[VoiceSpec, ...], wished: str) -> Voices:
    """A model's voices; the default is the one wished for if the model has it, else its first."""
    names = [voice.name for voice in known]
    default = wished if wished in names else (names or [""])[0]
    return Voices(known, default)


def check_language(voice: VoiceSpec, language: str | None) -> None:
    """Refuse a language that the voice does not speak; `en` and `en-US` are alike here."""
    spoken = voice.languages or (voice.language,)
    if language is not None and _primary(language) not in map(_primary, spoken):
        named = ", ".join(f"'{tag}'" for tag in spoken)
        message = f"Invalid 'language': voice '{voice.name}' speaks {named} only."
        raise RefusedError(Problem(message, "language", "unsupported_value"))


def language_name(pipeline: Pipeline, voice: VoiceSpec, language: str | None) -> str:
    """What the model calls the language asked for, else the voice's own; empty where it has none,
    and hears it from the text."""
    return pipeline.language_names.get(_primary(language or voice.language), "")


def _primary(tag: str) -> str:
    return tag.replace("_", "-").split("-")[0].lower()
