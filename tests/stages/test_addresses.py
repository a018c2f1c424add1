"""A stage that addresses its chunks, with real workers: both forms give the same."""

import math

import numpy as np
import pytest

from orchestrator import AsyncChunkOrchestrator, Orchestrator
from stages.contract.messages import (
    OUTPUT_RATE_HZ,
    ChatPrompt,
    LatentChunk,
    Message,
    Sampling,
    StageInput,
    TextChunk,
    ThinkerParams,
)
from stages.contract.pipeline import chat_request, prewarm_fn
from stages.contract.roles import Role
from stages.models.fake.settings import FakeSettings
from stages.models.fake.stages import (
    FRAME_SAMPLES,
    FRAMES_PER_LETTER,
    FakeCode2Wav,
    FakeTalker,
    tone_hz,
)
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas
from tests.deployments import ROLES
from tests.stages.addressed import SplitThinker
from tests.stages.models.parameters import talker_params

FINAL = {0, 2}
PROMPT = ChatPrompt((Message("user", "one two three four five"),))
REQUEST = chat_request(
    ThinkerParams(PROMPT, Sampling(seed=1), max_tokens=99), talker_params(FakeSettings, "fake-low")
)


def build_split(*placements):
    """A deployment, and the handles of its pipeline, whose edges and reports hold two chunks."""
    kinds = (SplitThinker, FakeTalker, FakeCode2Wav)
    stages = [
        make_replicas(on, str(role), kind)
        for on, role, kind in zip(placements, ROLES, kinds, strict=True)
    ]
    steps = [
        PipelineStage(stage, role, final=role is not Role.TALKER, max_unread=2, max_chunks=2)
        for stage, role in zip(stages, ROLES, strict=True)
    ]
    handles, edges = wire(steps)
    return Deployment(stages, [], edges), handles


@pytest.fixture(params=["thread", "process"])
async def split_handles(request):
    deployment, handles = build_split(*[Placement(executor=request.param)] * 3)
    await deployment.start()
    yield handles
    await deployment.stop()


def forward(stage_id, data):
    source = tuple(item for item in data if isinstance(item, TextChunk | LatentChunk))
    return StageInput(REQUEST.params[stage_id], source, has_next=False)


def tone(word):
    pitches = np.full(
        len(word) * FRAMES_PER_LETTER * FRAME_SAMPLES, tone_hz(word, "fake-low"), np.float32
    )
    return (8000 * np.sin(np.cumsum(pitches) * (2 * math.pi / OUTPUT_RATE_HZ))).astype(np.int16)


@pytest.mark.parametrize(
    ("form", "prompt", "make_input"),
    [
        (AsyncChunkOrchestrator, REQUEST, prewarm_fn),
        (Orchestrator, StageInput(REQUEST.params[0], (), has_next=False), forward),
    ],
    ids=["at once", "one after the other"],
)
async def test_the_client_and_the_next_stage_each_get_what_is_for_them(
    split_handles, form, prompt, make_input
):
    orchestrator = form(split_handles, FINAL, make_input, roles=ROLES)
    await orchestrator.start()
    async with orchestrator.stream(prompt, last_stage=2) as outputs:
        chunks = [output async for output in outputs if not output.is_end]
    await orchestrator.shutdown()
    text = "".join(chunk.data.text for chunk in chunks if chunk.role == Role.THINKER)
    assert text == "You said: one two three four five"
    audio = np.concatenate([c.data.samples for c in chunks if c.role == Role.CODE2WAV])
    assert np.array_equal(audio, np.concatenate([tone(word) for word in text.upper().split()]))
