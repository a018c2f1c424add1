"""Builds a deployment of Qwen3-TTS (the 12 Hz family) from a checkpoint: a folder or a hub model.

CustomVoice speaks with the speakers of the checkpoint. VoiceDesign speaks with a voice that
`instructions` describe. Base speaks with voices that are copied from recordings. Torch-free.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stages.contract.messages import OUTPUT_RATE_HZ
from stages.contract.pipeline import SPEECH_ALIASES, Pipeline, VoiceSpec
from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.recordings import find_recordings
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.executors.startup import StageClass
from stages.runtime.replicas import make_replicas
from stages.text.clean import speakable
from stages.weights.hub import model_folder

if TYPE_CHECKING:
    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig
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


def build_qwen3_tts(model: str, config: BuildConfig) -> Deployment:
    """Build the deployment of one checkpoint. Raises CheckpointError if it cannot be served."""
    folder = model_folder(model, FILE_PATTERNS, REQUIRED_FILES)
    tts = read_config(folder)
    placement = config.talker
    talker = make_replicas(
        placement,
        "talker",
        StageClass("stages.models.qwen3_tts.talker.stage", "QwenTalkerStage"),
        QwenTalkerConfig(
            folder,
            placement.device,
            placement.dtype,
            max_rows=config.max_running,
            max_loaded_voices=config.max_loaded_voices,
        ),
    )
    placement = config.code2wav
    code2wav = make_replicas(
        placement,
        "code2wav",
        StageClass("stages.models.qwen3_tts.code2wav.stage", "QwenCode2WavStage"),
        QwenCode2WavConfig(folder / "speech_tokenizer", placement.device, placement.dtype),
    )
    handles, edges = wire(
        [
            PipelineStage(talker, final=False, max_chunks=MAX_CODEC_FRAMES),
            PipelineStage(code2wav, final=True, max_unread=MAX_UNREAD_AUDIO_CHUNKS),
        ]
    )
    language_names = {tag: name for tag, name in LANGUAGES.items() if name in tts.languages}
    find_voices = partial(_voices, tts, tuple(language_names), config.recordings_dir)
    tokenizer = TextTokenizer(folder)
    speech = Pipeline(
        model_id=folder.name if Path(model).expanduser().is_dir() else model,
        aliases=SPEECH_ALIASES,
        stage_names=("talker", "code2wav"),
        handles=handles,
        final_stage_ids=frozenset({1}),
        voices=find_voices(),
        speakable=speakable,
        find_voices=find_voices,
        recordings=config.recordings_dir if tts.kind == "base" else None,
        language_names=language_names,
        fixed_prosody=True,
        count_tokens=lambda text: len(tokenizer.encode(text)),
    )
    return Deployment([talker, code2wav], [speech], edges)


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
