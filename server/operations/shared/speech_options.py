"""Checks the speaking style of a request against its voice, and makes the talker's parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.problems import Problem
from server.errors import RefusedError
from server.serving.voices import NOTHING_TO_SPEAK
from stages.contract.messages import TalkerParams
from stages.text.markup import cleaned
from stages.text.scripts import unspeakable
from stages.text.traced import Traced

if TYPE_CHECKING:
    from openapi.speaking_style import SpeakingStyle
    from server.config.settings import Settings
    from stages.contract.pipeline import Pipeline, VoiceSpec

CODE_ANNOUNCEMENT = "Code block."  # the default of English voices
MAX_NAMED_SPEAKERS = 20
MAX_SPEAKER_DIGITS = 5


def speech_options(
    voice: VoiceSpec,
    style: SpeakingStyle,
    settings: Settings,
    *,
    seed: int,
    speed: float = 1.0,
    param_prefix: str = "",
) -> TalkerParams:
    """How the stages are to speak.

    Raises RefusedError for an unknown speaker; it names the field `param_prefix` + "speaker".
    """
    return TalkerParams(
        voice=voice.name,
        seed=seed,
        speed=speed,
        noise_scale=style.noise_scale,
        noise_w=style.noise_w,
        length_scale=style.length_scale,
        sentence_silence_s=style.sentence_silence,
        speaker=_speaker(voice, style.speaker, f"{param_prefix}speaker"),
        clean=settings.clean if style.clean is None else style.clean,
        code_announcement=_code_announcement(voice, settings),
        captions=bool(style.captions),
        file=voice.file,
    )


def check_speakable(text: str, voice: VoiceSpec, options: TalkerParams, pipeline: Pipeline) -> None:
    """Refuse text that is empty after cleaning, or that has letters the voice cannot speak."""
    source = cleaned(text, options.code_announcement) if options.clean else Traced.of(text)
    if not pipeline.speakable(source.text):
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
