"""The talker of Qwen3-TTS passes the conformance suite, also with fewer rows than requests."""

import pytest

from stages.contract.messages import TextChunk
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage
from tests.qwen3_tts.cases import CASES
from tests.stages.models.qwen3_tts.talker.driver import params
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject


@pytest.fixture(scope="module", params=[1, 4])
def stage(request, checkpoints):
    folder = checkpoints["voice_design"]
    stage = QwenTalkerStage(QwenTalkerConfig(folder, max_tokens=256, max_rows=request.param))
    stage.load()
    stage.warm()
    return stage


@pytest.fixture
def subject(stage):
    """The small models end few speeches: one of those, whole and in parts, and an empty text."""
    case = next(case for case in CASES if case.kind == "voice_design")
    texts = {"a": [case.text], "b": list(case.text), "empty": [" "]}
    speech = params("", instructions=case.instructions)
    return Subject(stage, {name: (speech, [*map(TextChunk, each)]) for name, each in texts.items()})
