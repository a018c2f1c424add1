"""The fake models: the same two pipelines as the embedded models, without weights.

They serve tests, client tests of other projects, and measurements of the server alone.
"""

from __future__ import annotations

from stages.contract.errors import StartError
from stages.contract.pipeline import CHAT_ALIASES, SPEECH_ALIASES, Pipeline, VoiceSpec
from stages.models.fake.prompts import FakePrompts
from stages.models.fake.stages import VOICES, FakeCode2Wav, FakeTalker, FakeThinker
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas

DEFAULT_PLACEMENT = Placement()


def build_fake(
    on_thinker: Placement = DEFAULT_PLACEMENT,
    on_talker: Placement = DEFAULT_PLACEMENT,
    on_code2wav: Placement = DEFAULT_PLACEMENT,
) -> Deployment:
    """Build the deployment of `fake-speech` and `fake-chat` with these placements.

    Raises StartError if a placement asks for a GPU, because no fake stage uses one.
    """
    for placement in (on_thinker, on_talker, on_code2wav):
        if placement.device not in ("auto", "cpu"):
            message = f"setting device: the fake models run on the CPU, not on {placement.device}"
            raise StartError(f"{message}; use auto or cpu")
    thinker = make_replicas(on_thinker, "thinker", FakeThinker)
    talker = make_replicas(on_talker, "talker", FakeTalker)
    code2wav = make_replicas(on_code2wav, "code2wav", FakeCode2Wav)
    speech_handles, speech_edges = wire(
        [PipelineStage(talker, final=False), PipelineStage(code2wav, final=True)]
    )
    chat_handles, chat_edges = wire(
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
        handles=speech_handles,
        final_stage_ids=frozenset({1}),
        voices=voices,
        speakable=is_speakable,
    )
    chat = Pipeline(
        model_id="fake-chat",
        aliases=CHAT_ALIASES,
        stage_names=("thinker", "talker", "code2wav"),
        handles=chat_handles,
        final_stage_ids=frozenset({0, 2}),
        voices=voices,
        speakable=is_speakable,
        prompts=FakePrompts(),
    )
    return Deployment([thinker, talker, code2wav], [speech, chat], [*speech_edges, *chat_edges])


def is_speakable(text: str) -> bool:
    """Whether the text contains a letter or a digit."""
    return any(character.isalnum() for character in text)
