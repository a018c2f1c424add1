"""The fake stages, and one that addresses its chunks, pass the conformance suite."""

import numpy as np
import pytest

from stages.contract.messages import (
    ChatPrompt,
    Code2WavParams,
    LatentChunk,
    Message,
    Sampling,
    TextChunk,
    ThinkerParams,
)
from stages.models.fake.settings import FakeSettings
from stages.models.fake.stages import FakeCode2Wav, FakeTalker, FakeThinker
from tests.stages.addressed import SplitThinker
from tests.stages.models.parameters import talker_params
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject

TEXTS = {"a": "one two three", "b": "hello", "c": "a longer text with some more words in it"}


def chat(text):
    return ThinkerParams(ChatPrompt((Message("user", text),)), Sampling(seed=1), max_tokens=6), []


def speech(text):
    return talker_params(FakeSettings, "fake-low"), [TextChunk(text)]


def sound(text):
    frames = np.full((3, 1), 200, np.float32)
    return Code2WavParams("fake-low"), [LatentChunk(frames, True, True)] * len(text)


@pytest.fixture(
    params=[(FakeThinker, chat), (SplitThinker, chat), (FakeTalker, speech), (FakeCode2Wav, sound)],
    ids=["thinker", "thinker with addresses", "talker", "code2wav"],
)
def subject(request):
    stage, make = request.param
    return Subject(stage(), {name: make(text) for name, text in TEXTS.items()})
