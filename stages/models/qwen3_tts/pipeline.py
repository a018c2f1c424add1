"""Qwen3-TTS (the 12 Hz family) from a checkpoint: a folder, or a model of the hub.

CustomVoice speaks with the checkpoint's speakers, VoiceDesign with a voice that `instructions`
describe, Base with voices that are copied from recordings. Torch-free.
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
from stages.models.qwen3_tts.talker.vocabulary import TextVocabulary
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.executors.startup import StageClass
from stages.runtime.replicas import make_replicas
from stages.text.clean import speakable
from stages.weights.hub import model_folder

if TYPE_CHECKING:
    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig
    from stages.runtime.placement import BuildConfig

FILES = ("*.json", "*.txt", "*.safetensors", "speech_tokenizer/*")
NEEDED = (
    "config.json",
    "generation_config.json",
    "model.safetensors|model.safetensors.index.json",
    "speech_tokenizer/config.json",
    "speech_tokenizer/model.safetensors|speech_tokenizer/model.safetensors.index.json",
)
DESIGNED = "designed"
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
# How far a stage may run ahead: of the client in chunks, of code2wav in frames.
UNREAD_AUDIO = 8
CODEC_FRAMES = 64


def build_qwen3_tts(model: str, config: BuildConfig) -> Deployment:
    """The deployment of one checkpoint. Raises CheckpointError."""
    folder = model_folder(model, FILES, NEEDED)
    tts = read_config(folder)
    on = config.talker
    talker = make_replicas(
        on,
        "talker",
        StageClass("stages.models.qwen3_tts.talker.stage", "QwenTalkerStage"),
        QwenTalkerConfig(
            folder,
            on.device,
            on.dtype,
            max_rows=config.max_running,
            max_loaded_voices=config.max_loaded_voices,
        ),
    )
    on = config.code2wav
    code2wav = make_replicas(
        on,
        "code2wav",
        StageClass("stages.models.qwen3_tts.code2wav.stage", "QwenCode2WavStage"),
        QwenCode2WavConfig(folder / "speech_tokenizer", on.device, on.dtype),
    )
    faces, edges = wire(
        [
            PipelineStage(talker, final=False, max_chunks=CODEC_FRAMES),
            PipelineStage(code2wav, final=True, max_unread=UNREAD_AUDIO),
        ]
    )
    names = {tag: name for tag, name in LANGUAGES.items() if name in tts.languages}
    find = partial(_voices, tts, tuple(names), config.recordings_dir)
    vocabulary = TextVocabulary(folder)
    speech = Pipeline(
        model_id=folder.name if Path(model).expanduser().is_dir() else model,
        aliases=SPEECH_ALIASES,
        stage_names=("talker", "code2wav"),
        handles=faces,
        final_stage_ids=frozenset({1}),
        voices=find(),
        speakable=speakable,
        find_voices=find,
        recordings=config.recordings_dir if tts.kind == "base" else None,
        language_names=names,
        fixed_prosody=True,
        count_tokens=lambda text: len(vocabulary.encode(text)),
    )
    return Deployment([talker, code2wav], [speech], edges)


def _voices(
    config: QwenTtsConfig, languages: tuple[str, ...], recordings: Path | None
) -> tuple[VoiceSpec, ...]:
    """The checkpoint's speakers, the designed voice, or the recordings as they are now."""
    make = partial(VoiceSpec, rate_hz=OUTPUT_RATE_HZ, languages=languages)
    if config.kind == "custom_voice":
        return tuple(make(name, ANY_LANGUAGE) for name in config.speakers)
    if config.kind == "voice_design":
        return (make(DESIGNED, ANY_LANGUAGE),)
    found = find_recordings(recordings) if recordings is not None else []
    return tuple(make(one.name, one.language or ANY_LANGUAGE, file=one.file) for one in found)
