"""Voices by name. OpenAI's voice names are accepted too, and mean the default voice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from openapi.problems import Problem
from server.errors import RefusedError

if TYPE_CHECKING:
    from stages.contract.model import VoiceSpec

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
        """Other accepted names of the voice `name`: OpenAI's names, if it is the default voice."""
        own = {voice.name for voice in self.known}
        return tuple(a for a in OPENAI_VOICES if a not in own) if name == self.default else ()

    def resolve(self, name: str, param: str) -> VoiceSpec:
        """The voice named `name` in a request. Raises RefusedError with all known names.

        The error does not repeat `name`: whatever a client sends there, even a path, gets the same
        answer.
        """
        if name in self.aliases(self.default):
            name = self.default
        for voice in self.known:
            if voice.name == name:
                return voice
        names = ", ".join(f"'{voice.name}'" for voice in self.known)
        others = ", ".join(f"'{alias}'" for alias in self.aliases(self.default))
        message = f"There is no such voice. Voices: {names}. Names for the default: {others}."
        raise RefusedError(Problem(message, param, "voice_not_found"))


def voices_of(known: tuple[VoiceSpec, ...], default: str) -> Voices:
    """A model's voices. If the model has no voice named `default`, its first is the default."""
    names = [voice.name for voice in known]
    return Voices(known, default if default in names else (names or [""])[0])


def check_language(voice: VoiceSpec, language: str | None) -> None:
    """Raise RefusedError if `voice` does not speak `language`. Regions (`en-US`) are ignored."""
    spoken = voice.languages or (voice.language,)
    if language is not None and _primary(language) not in map(_primary, spoken):
        named = ", ".join(f"'{tag}'" for tag in spoken)
        message = f"Invalid 'language': voice '{voice.name}' speaks {named} only."
        raise RefusedError(Problem(message, "language", "unsupported_value"))


def _primary(tag: str) -> str:
    return tag.replace("_", "-").split("-")[0].lower()
