"""The fake models: the same two pipelines as the embedded ones, without weights.

For tests, for other people's client tests, and for measuring the control path alone.
"""

from __future__ import annotations

from stages.contract.errors import StartError
from stages.contract.pipeline import CHAT_ALIASES, SPEECH_ALIASES, Pipeline, VoiceSpec
from stages.models.fake.prompts import FakePrompts
from stages.models.fake.stages import VOICES, FakeCode2Wav, FakeTalker, FakeThinker
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas

ONE = Placement()


def build_fake(
    on_thinker: Placement = ONE,
    on_talker: Placement = ONE,
    on_code2wav: Placement = ONE,
) -> Deployment:
    """The deployment of `fake-speech` and `fake-chat`, each stage placed as it says.

    Raises StartError where a GPU is asked for, which nothing of it would use.
    """
    for on in (on_thinker, on_talker, on_code2wav):
        if on.device not in ("auto", "cpu"):
            raise StartError(f"setting device: the fake models run on the CPU, not on {on.device}")
    thinker = make_replicas(on_thinker, "thinker", FakeThinker)
    talker = make_replicas(on_talker, "talker", FakeTalker)
    code2wav = make_replicas(on_code2wav, "code2wav", FakeCode2Wav)
    speech_faces, speech_edges = wire(
        [PipelineStage(talker, final=False), PipelineStage(code2wav, final=True)]
    )
    chat_faces, chat_edges = wire(
        [
            PipelineStage(thinker, final=True),
            PipelineStage(talker, final=False),
            PipelineStage(code2wav, final=True),
        ]
    )
    voices = tuple(VoiceSpec(name, "en-US") for name in VOICES)
    speech = Pipeline(
        model_id="fake-speech",
        aliases=SPEECH_ALIASES,
        stage_names=("talker", "code2wav"),
        handles=speech_faces,
        final_stage_ids=frozenset({1}),
        voices=voices,
        speakable=is_speakable,
    )
    chat = Pipeline(
        model_id="fake-chat",
        aliases=CHAT_ALIASES,
        stage_names=("thinker", "talker", "code2wav"),
        handles=chat_faces,
        final_stage_ids=frozenset({0, 2}),
        voices=voices,
        speakable=is_speakable,
        prompts=FakePrompts(),
    )
    return Deployment([thinker, talker, code2wav], [speech, chat], [*speech_edges, *chat_edges])


def is_speakable(text: str) -> bool:
    """Whether a letter or a digit is in it."""
    return any(character.isalnum() for character in text)
