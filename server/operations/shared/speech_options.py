"""A spoken style, checked against the voice that is to have it, as the stages take it."""

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
    from openapi.speaking_style import SpokenStyle
    from server.config.settings import Settings
    from stages.contract.pipeline import Pipeline, VoiceSpec

CODE_ANNOUNCEMENT = "Code block."  # of English voices
MAX_NAMED_SPEAKERS = 20


def speech_options(
    voice: VoiceSpec,
    style: SpokenStyle,
    settings: Settings,
    *,
    seed: int,
    speed: float = 1.0,
    where: str = "",
) -> TalkerParams:
    """How the stages are to speak. Raises RefusedError naming `speaker`, after `where`."""
    return TalkerParams(
        voice=voice.name,
        seed=seed,
        speed=speed,
        noise_scale=style.noise_scale,
        noise_w=style.noise_w,
        length_scale=style.length_scale,
        sentence_silence_s=style.sentence_silence,
        speaker=_speaker(voice, style.speaker, f"{where}speaker"),
        clean=settings.clean if style.clean is None else style.clean,
        code_announcement=_announcement(voice, settings),
        captions=bool(style.captions),
        file=voice.file,
    )


def check_text(text: str, voice: VoiceSpec, options: TalkerParams, pipeline: Pipeline) -> None:
    """Refuse a text of which nothing is left to speak, or not everything can be spoken."""
    said = cleaned(text, options.code_announcement) if options.clean else Traced.of(text)
    if not pipeline.speakable(said.text):
        raise RefusedError(NOTHING_TO_SPEAK)
    if voice.languages:  # the model reads any script
        return
    if (unknown := unspeakable(said, voice.language)) is not None:
        at, script = unknown
        message = (
            f"Invalid 'input': voice '{voice.name}' ({voice.language}) cannot speak {script} "
            f"letters; the first is character {at}."
        )
        raise RefusedError(Problem(message, "input", "unspeakable_text"))


def _announcement(voice: VoiceSpec, settings: Settings) -> str:
    if settings.code_announcement is not None:
        return settings.code_announcement
    return CODE_ANNOUNCEMENT if voice.language.lower().startswith("en") else ""


def _speaker(voice: VoiceSpec, asked: str | None, param: str) -> int:
    """The speaker's number. Names come before numbers, which count from 0."""
    if asked is None:
        return 0
    if asked in voice.speakers:
        return voice.speakers.index(asked)
    if asked.isdecimal() and len(asked) < 6 and int(asked) < max(1, len(voice.speakers)):
        return int(asked)
    if not voice.speakers:
        message = f"Invalid '{param}': voice '{voice.name}' has one speaker only."
    else:
        named = ", ".join(f"'{name}'" for name in voice.speakers[:MAX_NAMED_SPEAKERS])
        more = ", ..." if len(voice.speakers) > MAX_NAMED_SPEAKERS else ""
        message = (
            f"Invalid '{param}': voice '{voice.name}' has {len(voice.speakers)} speakers: "
            f"{named}{more}."
        )
    raise RefusedError(Problem(message, param, "speaker_not_found"))
