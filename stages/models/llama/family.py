"""Language models of the Llama layout; `smollm2-joe` comes with the install and speaks as well.

Torch-free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.contract.errors import CheckpointError
from stages.contract.model import CHAT_ALIASES, ModelSpec
from stages.contract.pipeline import TEXT_AND_AUDIO, TEXT_ONLY, Medium
from stages.contract.roles import Role
from stages.models.llama.config import ThinkerConfig
from stages.models.llama.packaged_model import find_gguf, prepare
from stages.models.llama.prompts import SmolPrompts
from stages.runtime.deployment import PipelineStage
from stages.runtime.executors.startup import StageClass
from stages.runtime.family import WeightFile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stages.contract.model import VoiceSpec
    from stages.runtime.builder import Builder, SpeechStages
    from stages.runtime.placement import BuildConfig

SPEAKS_WITH = "piper-joe"  # the model whose voice it speaks with
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
MAX_UNREAD_TEXT = 64  # chunks that the client has not read


class LlamaFamily:
    """See Family."""

    kinds: Sequence[str] = ()
    speaks_with: Sequence[str] = (SPEAKS_WITH,)
    has_collection = False

    def build(self, source: str, builder: Builder) -> Sequence[ModelSpec]:
        """A model that chats in text, or in text and audio."""
        config = builder.config
        files = prepare(config.cache_dir)  # converts the weights the first time
        on = config.placement(Role.THINKER)
        thinker = builder.stage(
            source,
            Role.THINKER,
            StageClass("stages.models.llama.stage", "ThinkerStage"),
            ThinkerConfig(config.cache_dir, on.device, on.dtype),
        )
        speech = builder.speech_of(SPEAKS_WITH)
        thinks = PipelineStage(thinker, Role.THINKER, final=True, max_unread=MAX_UNREAD_TEXT)
        return [
            ModelSpec(
                model_id=source,
                aliases=CHAT_ALIASES,
                pipelines=(
                    builder.pipeline(Medium.TEXT, TEXT_ONLY, (thinks,)),
                    builder.pipeline(Medium.TEXT, TEXT_AND_AUDIO, (thinks, *speech.steps)),
                ),
                voices=speech.voices,
                speakable=speech.speakable,
                speech_settings=speech.speech_settings,
                prompts=SmolPrompts(files),
                find_voices=speech.find_voices,
                uploads=speech.uploads,
            )
        ]

    def speech(self, source: str, builder: Builder) -> SpeechStages:
        """It speaks with the voice of another model only."""
        raise CheckpointError(f"{source} has no voice of its own; it speaks with {SPEAKS_WITH}")

    def voices(self, source: str, config: BuildConfig) -> Sequence[VoiceSpec]:
        """None of its own."""
        return ()

    def fetch_voice(self, name: str, config: BuildConfig) -> Path:
        """Not called: there is no collection."""
        raise NotImplementedError

    def weights(self, source: str, config: BuildConfig) -> Sequence[WeightFile]:
        """The packaged GGUF file, and its converted form, which is made here."""
        return [WeightFile(find_gguf(), GGUF_SHA256), WeightFile(prepare(config.cache_dir).weights)]

    def memory_bytes(self, source: str, config: BuildConfig) -> Mapping[Role, int]:
        """The size of the weights' file. The KV cache grows with use and is not counted."""
        return {Role.THINKER: prepare(config.cache_dir).weights.stat().st_size}


FAMILY = LlamaFamily()
