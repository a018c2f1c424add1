"""code2wav of Qwen3-TTS passes the conformance suite."""

import pytest

from stages.contract.messages import Code2WavParams, CodecChunk
from tests.stages.models.qwen3_tts.code2wav.driver import random_codes
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject


@pytest.fixture
def subject(driver):
    codes = {"a": random_codes(1, 20), "b": random_codes(2, 3), "c": random_codes(3, 12)}
    chunks = {name: [*map(CodecChunk, frames.split(4))] for name, frames in codes.items()}
    params = Code2WavParams("ryan")
    return Subject(driver.stage, {name: (params, each) for name, each in chunks.items()})
