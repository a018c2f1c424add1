"""The thinker with its real weights passes the conformance suite."""

import pytest

from stages.contract.messages import ChatPrompt, Message, RawPrompt, Sampling, ThinkerParams
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject

pytestmark = pytest.mark.model


@pytest.fixture
def subject(stage):
    colours = ChatPrompt((Message("user", "Name three colours."),))
    params = {
        "greedy": ThinkerParams(colours, Sampling(0, temperature=0), 9),
        "sampled": ThinkerParams(colours, Sampling(3), 6),
        "raw": ThinkerParams(RawPrompt("The sea is"), Sampling(0, temperature=0), 1),
    }
    return Subject(stage, {name: (each, []) for name, each in params.items()})
