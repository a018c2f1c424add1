"""Checks the speaking style of a request against its voice, and makes the talker's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.problems import Problem, unsupported
from server.errors import RefusedError
from server.serving.voices import NOTHING_TO_SPEAK
from stages.contract.messages import TalkerParams
from stages.contract.request_settings import SettingError
from stages.text.markup import cleaned
from stages.text.scripts import unspeakable
from stages.text.traced import Traced

if TYPE_CHECKING:
    from openapi.speaking_style import SpeakingStyle
    from server.config.settings import Settings
    from stages.contract.model import ModelSpec, VoiceSpec

CODE_ANNOUNCEMENT = "Code block."  # the default of English voices
MAX_NAMED_SPEAKERS = 20
MAX_SPEAKER_DIGITS = 5


def speech_options(
    voice: VoiceSpec,
    style: SpeakingStyle,
    settings: Settings,
    model: ModelSpec,
    *,
    seed: int,
    param_prefix: str = "",
) -> TalkerParams:
    """How the stages are to speak.

    Raises RefusedError for an unknown speaker, and for settings that the model does not have or
    take; it names the field, with `param_prefix`.
    """
    return TalkerParams(
        voice=voice.name,
        seed=seed,
        settings=_family_settings(voice, style, model, param_prefix),
        speaker=_speaker(voice, style.speaker, f"{param_prefix}speaker"),
        clean=settings.clean if style.clean is None else style.clean,
        code_announcement=_code_announcement(voice, settings),
        captions=bool(style.captions),
        file=voice.file,
    )


def check_speakable(text: str, voice: VoiceSpec, options: TalkerParams, model: ModelSpec) -> None:
    """Refuse text that is empty after cleaning, or that has letters the voice cannot speak."""
    source = cleaned(text, options.code_announcement) if options.clean else Traced.of(text)
    if not model.speakable(source.text):
        raise RefusedError(NOTHING_TO_SPEAK)
    if voice.languages:  # the model reads any script
        return
    if (unknown := unspeakable(source, voice.language)) is not None:
        position, script = unknown
        message = (
            f"Invalid 'input': voice '{voice.name}' ({voice.language}) cannot speak {script} "
            f"letters; the first is character {position}."
        )
        raise RefusedError(Problem(message, "input", "unspeakable_text"))


def _family_settings(
    voice: VoiceSpec, style: SpeakingStyle, model: ModelSpec, param_prefix: str
) -> object:
    """What the request sets, as the family takes it. Default values are left out."""
    values = {"language": voice.language, **style.family_values()}
    try:
        return model.speech_settings(values, style.model_extra or {})
    except SettingError as error:
        param = f"{param_prefix}{error.field}"
        if error.is_unknown:
            message = (
                f"Unsupported parameter: '{param}': this model does not have it. "
                "Describe the way to speak in 'instructions'."
            )
            raise RefusedError(unsupported(param, message)) from None
        message = f"Invalid '{param}': {error}."
        raise RefusedError(Problem(message, param, "invalid_value")) from None


def _code_announcement(voice: VoiceSpec, settings: Settings) -> str:
    if settings.code_announcement is not None:
        return settings.code_announcement
    return CODE_ANNOUNCEMENT if voice.language.lower().startswith("en") else ""


def _speaker(voice: VoiceSpec, requested: str | None, param: str) -> int:
    """The number of the speaker, from 0. A name wins over a number that is written the same."""
    if requested is None:
        return 0
    if requested in voice.speakers:
        return voice.speakers.index(requested)
    is_number = requested.isdecimal() and len(requested) <= MAX_SPEAKER_DIGITS
    if is_number and int(requested) < max(1, len(voice.speakers)):
        return int(requested)
    if not voice.speakers:
        message = f"Invalid '{param}': voice '{voice.name}' has only one speaker. Omit '{param}'."
    else:
        names = ", ".join(f"'{name}'" for name in voice.speakers[:MAX_NAMED_SPEAKERS])
        more = ", ..." if len(voice.speakers) > MAX_NAMED_SPEAKERS else ""
        message = (
            f"Invalid '{param}': voice '{voice.name}' has {len(voice.speakers)} speakers: "
            f"{names}{more}."
        )
    raise RefusedError(Problem(message, param, "speaker_not_found"))
