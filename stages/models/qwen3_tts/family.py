"""Qwen3-TTS (the 12 Hz family) from a checkpoint: a folder or a model of the hub.

CustomVoice speaks with the speakers of the checkpoint. VoiceDesign speaks with a voice that
`instructions` describe. Base speaks with voices that are copied from recordings. Torch-free.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages.contract.messages import OUTPUT_RATE_HZ
from stages.contract.model import SPEECH_ALIASES, ModelSpec, VoiceSpec
from stages.contract.pipeline import AUDIO_ONLY, Medium
from stages.contract.request_settings import fill
from stages.contract.roles import Role
from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.settings import QwenSettings
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.model_config import MODEL_TYPE, read_config
from stages.models.qwen3_tts.talker.recordings import RecordingFolder, find_recordings
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from stages.runtime.builder import SpeechStages
from stages.runtime.deployment import PipelineStage
from stages.runtime.executors.startup import StageClass
from stages.runtime.family import WeightFile
from stages.text.clean import speakable
from stages.weights.hub import model_folder, published_sha256

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig
    from stages.runtime.builder import Builder
    from stages.runtime.placement import BuildConfig

FILE_PATTERNS = ("*.json", "*.txt", "*.safetensors", "speech_tokenizer/*")
REQUIRED_FILES = (
    "config.json",
    "generation_config.json",
    "model.safetensors|model.safetensors.index.json",
    "speech_tokenizer/config.json",
    "speech_tokenizer/model.safetensors|speech_tokenizer/model.safetensors.index.json",
)
DESIGNED_VOICE = "designed"
ANY_LANGUAGE = "mul"
LANGUAGES = {
    "zh": "chinese",
    "en": "english",
    "de": "german",
    "it": "italian",
    "pt": "portuguese",
    "es": "spanish",
    "ja": "japanese",
    "ko": "korean",
    "fr": "french",
    "ru": "russian",
}
MAX_UNREAD_AUDIO_CHUNKS = 8  # how far code2wav may run ahead of the client
MAX_CODEC_FRAMES = 64  # how far the talker may run ahead of code2wav


class QwenTtsFamily:
    """See Family."""

    kinds = (MODEL_TYPE,)
    speaks_with: Sequence[str] = ()
    has_collection = False

    def build(self, source: str, builder: Builder) -> Sequence[ModelSpec]:
        """The one model of a checkpoint. Raises CheckpointError."""
        folder = _folder(source)
        tokenizer = TextTokenizer(folder)
        speech = builder.speech_of(source)
        return [
            ModelSpec(
                model_id=folder.name if Path(source).expanduser().is_dir() else source,
                aliases=SPEECH_ALIASES,
                pipelines=(builder.pipeline(Medium.TEXT, AUDIO_ONLY, speech.steps),),
                voices=speech.voices,
                speakable=speech.speakable,
                speech_settings=speech.speech_settings,
                find_voices=speech.find_voices,
                uploads=speech.uploads,
                count_tokens=lambda text: len(tokenizer.encode(text)),
            )
        ]

    def speech(self, source: str, builder: Builder) -> SpeechStages:
        """Talker and code2wav of a checkpoint, and its voices."""
        config, folder = builder.config, _folder(source)
        tts = read_config(folder)
        on = config.placement(Role.TALKER)
        talker = builder.stage(
            source,
            Role.TALKER,
            StageClass("stages.models.qwen3_tts.talker.stage", "QwenTalkerStage"),
            QwenTalkerConfig(
                folder,
                on.device,
                on.dtype,
                max_rows=config.max_running,
                max_loaded_voices=config.max_loaded_voices,
            ),
        )
        on = config.placement(Role.CODE2WAV)
        code2wav = builder.stage(
            source,
            Role.CODE2WAV,
            StageClass("stages.models.qwen3_tts.code2wav.stage", "QwenCode2WavStage"),
            QwenCode2WavConfig(folder / "speech_tokenizer", on.device, on.dtype),
        )
        languages = tuple(_language_names(tts))
        find_voices = partial(_voices, tts, languages, config.recordings_dir)
        recordings = config.recordings_dir if tts.kind == "base" else None
        return SpeechStages(
            steps=(
                PipelineStage(talker, Role.TALKER, final=False, max_chunks=MAX_CODEC_FRAMES),
                PipelineStage(
                    code2wav, Role.CODE2WAV, final=True, max_unread=MAX_UNREAD_AUDIO_CHUNKS
                ),
            ),
            voices=find_voices(),
            speakable=speakable,
            speech_settings=partial(_settings, _language_names(tts)),
            find_voices=find_voices,
            uploads=None if recordings is None else RecordingFolder(recordings),
        )

    def voices(self, source: str, config: BuildConfig) -> Sequence[VoiceSpec]:
        """The checkpoint's speakers, its designed voice, or the recordings."""
        tts = read_config(_folder(source))
        return _voices(tts, tuple(_language_names(tts)), config.recordings_dir)

    def fetch_voice(self, name: str, config: BuildConfig) -> Path:
        """Not called: there is no collection."""
        raise NotImplementedError

    def weights(self, source: str, config: BuildConfig) -> Sequence[WeightFile]:
        """Every file of the checkpoint. A checkpoint of the hub is fetched if it is missing."""
        folder = _folder(source)
        return [
            WeightFile(path, published_sha256(path))
            for pattern in FILE_PATTERNS
            for path in sorted(folder.glob(pattern))
            if path.is_file()
        ]

    def memory_bytes(self, source: str, config: BuildConfig) -> Mapping[Role, int]:
        """The weights as the files have them; the cache of sequences comes on top."""
        folder = _folder(source)
        talker = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        codec = sum(
            path.stat().st_size for path in (folder / "speech_tokenizer").glob("*.safetensors")
        )
        return {Role.TALKER: talker, Role.CODE2WAV: codec}


FAMILY = QwenTtsFamily()


def _settings(
    names: Mapping[str, str], values: Mapping[str, Any], extra: Mapping[str, Any]
) -> QwenSettings:
    """The settings of a request; the language gets the name that the model knows it by."""
    tag = str(values.get("language", "")).replace("_", "-").split("-")[0].lower()
    return fill(QwenSettings, {**values, "language": names.get(tag, "")}, extra)


def _folder(source: str) -> Path:
    return model_folder(source, FILE_PATTERNS, REQUIRED_FILES)


def _language_names(tts: QwenTtsConfig) -> dict[str, str]:
    return {tag: name for tag, name in LANGUAGES.items() if name in tts.languages}


def _voices(
    config: QwenTtsConfig, languages: tuple[str, ...], recordings: Path | None
) -> tuple[VoiceSpec, ...]:
    """The speakers of the checkpoint, the designed voice, or the recordings that exist now."""
    voice = partial(VoiceSpec, rate_hz=OUTPUT_RATE_HZ, languages=languages)
    if config.kind == "custom_voice":
        return tuple(voice(name, ANY_LANGUAGE) for name in config.speakers)
    if config.kind == "voice_design":
        return (voice(DESIGNED_VOICE, ANY_LANGUAGE),)
    found = find_recordings(recordings) if recordings is not None else []
    return tuple(voice(each.name, each.language or ANY_LANGUAGE, file=each.file) for each in found)
