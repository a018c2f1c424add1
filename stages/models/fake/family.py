"""The fake models: the same pipelines as the embedded ones, without weights.

For tests, for other people's client tests, and for measuring the control path alone. Torch-free.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stages.contract.errors import StartError
from stages.contract.model import CHAT_ALIASES, SPEECH_ALIASES, ModelSpec, VoiceSpec
from stages.contract.pipeline import AUDIO_ONLY, TEXT_AND_AUDIO, TEXT_ONLY, Medium
from stages.contract.request_settings import fill
from stages.contract.roles import Role
from stages.models.fake.prompts import FakePrompts
from stages.models.fake.settings import FakeSettings
from stages.models.fake.stages import VOICES, FakeCode2Wav, FakeTalker, FakeThinker
from stages.runtime.builder import SpeechStages
from stages.runtime.deployment import PipelineStage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from stages.contract.stage import Stage
    from stages.runtime.builder import Builder
    from stages.runtime.family import WeightFile
    from stages.runtime.placement import BuildConfig
    from stages.runtime.replicas import StageWorkers


class FakeFamily:
    """See Family."""

    kinds: Sequence[str] = ()
    speaks_with: Sequence[str] = ()
    has_collection = False

    def build(self, source: str, builder: Builder) -> Sequence[ModelSpec]:
        """`fake-speech`, and `fake-chat`, which shares its stages.

        Raises StartError if a GPU is asked for, which nothing here would use.
        """
        thinker = _stage(source, Role.THINKER, FakeThinker, builder)
        speech = builder.speech_of(source)
        thinks = PipelineStage(thinker, Role.THINKER, final=True)
        speech_model = ModelSpec(
            model_id="fake-speech",
            aliases=SPEECH_ALIASES,
            pipelines=(builder.pipeline(Medium.TEXT, AUDIO_ONLY, speech.steps),),
            voices=speech.voices,
            speakable=speech.speakable,
            speech_settings=speech.speech_settings,
        )
        chat = ModelSpec(
            model_id="fake-chat",
            aliases=CHAT_ALIASES,
            pipelines=(
                builder.pipeline(Medium.TEXT, TEXT_ONLY, (thinks,)),
                builder.pipeline(Medium.TEXT, TEXT_AND_AUDIO, (thinks, *speech.steps)),
            ),
            voices=speech.voices,
            speakable=speech.speakable,
            speech_settings=speech.speech_settings,
            prompts=FakePrompts(),
        )
        return [speech_model, chat]

    def speech(self, source: str, builder: Builder) -> SpeechStages:
        """A talker and a code2wav that speak in tones."""
        talker = _stage(source, Role.TALKER, FakeTalker, builder)
        code2wav = _stage(source, Role.CODE2WAV, FakeCode2Wav, builder)
        return SpeechStages(
            steps=(
                PipelineStage(talker, Role.TALKER, final=False),
                PipelineStage(code2wav, Role.CODE2WAV, final=True),
            ),
            voices=tuple(self.voices(source, builder.config)),
            speakable=is_speakable,
            speech_settings=partial(fill, FakeSettings),
        )

    def voices(self, source: str, config: BuildConfig) -> Sequence[VoiceSpec]:
        """Two, each a tone."""
        return tuple(VoiceSpec(name, "en-US") for name in VOICES)

    def fetch_voice(self, name: str, config: BuildConfig) -> Path:
        """Not called: there is no collection."""
        raise NotImplementedError

    def weights(self, source: str, config: BuildConfig) -> Sequence[WeightFile]:
        """None."""
        return ()

    def memory_bytes(self, source: str, config: BuildConfig) -> Mapping[Role, int]:
        """Nothing worth counting."""
        return dict.fromkeys((Role.THINKER, Role.TALKER, Role.CODE2WAV), 0)


FAMILY = FakeFamily()


def is_speakable(text: str) -> bool:
    """Whether a text has a letter or a digit."""
    return any(character.isalnum() for character in text)


def _stage(source: str, role: Role, stage: Callable[[], Stage], builder: Builder) -> StageWorkers:
    device = builder.config.placement(role).device
    if device not in ("auto", "cpu"):
        raise StartError(f"setting device: the fake models run on the CPU, not on {device}")
    return builder.stage(source, role, stage)
