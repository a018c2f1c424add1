"""The talker passes the conformance suite."""

import pytest

from stages.contract.messages import TextChunk
from stages.models.piper.settings import PiperSettings
from tests.stages.models.parameters import talker_params
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject

pytestmark = pytest.mark.model

TEXTS = {"a": ["Hello there.", " Good bye."], "b": ["Yes!"], "c": ["The train ", "leaves at nine."]}


@pytest.fixture
def subject(talker):
    params = talker_params(PiperSettings, "joe", seed=7)
    texts = {name: [*map(TextChunk, parts)] for name, parts in TEXTS.items()}
    return Subject(talker, {name: (params, chunks) for name, chunks in texts.items()})
