"""code2wav on a GPU: the public package's samples from graphs, in company."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from stages.contract.messages import CodecChunk
from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.code2wav.stage import QwenCode2WavStage
from tests.qwen3_tts.stored import VALUES
from tests.stages.models.qwen3_tts.code2wav.driver import Clock, StageDriver

TOLERANCE = 12  # of 32,768: sums in another order than the CPU's


@pytest.fixture(scope="module")
def stage(checkpoints):
    config = QwenCode2WavConfig(checkpoints["custom_voice"] / "speech_tokenizer", "cuda")
    before = torch.cuda.current_stream()
    stage = QwenCode2WavStage(config, Clock())
    stage.load()
    stage.warm()
    yield stage
    torch.cuda.set_stream(before)


@pytest.fixture(scope="module")
def values():
    return load_file(VALUES)


def chunks_of(codes, size):
    chunks = [CodecChunk(part) for part in codes.cuda().split(size)]
    torch.cuda.synchronize()  # codes are complete when they are sent
    return chunks


def samples_of(audio):
    return np.concatenate([chunk.samples for chunk in audio]).astype(int)


def test_samples_are_the_packages_whatever_the_cuts_and_the_company(stage, values):
    codes = values["code2wav.codes"]
    expected = np.rint(values["code2wav.samples"].numpy() * 32767).astype(int)
    driver = StageDriver(stage)
    for number in range(11):  # a graph's size is larger
        driver.open(f"{number}", chunks_of(codes, 1 + number))
    driver.run()
    for audio in driver.audio.values():
        assert np.abs(samples_of(audio) - expected).max() <= TOLERANCE


def test_streams_that_come_and_go_do_not_disturb_each_other(stage, values):
    codes = values["code2wav.codes"]
    driver = StageDriver(stage)
    driver.open("long", chunks_of(codes, 1))
    for number in range(8):
        driver.open(f"{number}", chunks_of(codes[number : number + 3], 1))
        for _ in range(2):
            driver.feed()
            driver.step()
    driver.run()
    expected = np.rint(values["code2wav.samples"].numpy() * 32767).astype(int)
    assert np.abs(samples_of(driver.audio["long"]) - expected).max() <= TOLERANCE


def test_a_closed_stream_gives_its_memory_back(stage, values):
    def turn():
        driver = StageDriver(stage)
        for number in range(8):
            driver.open(f"{number}", chunks_of(values["code2wav.codes"], 4))
        driver.run()
        torch.cuda.synchronize()
        torch.empty(1, device="cuda")  # only an allocation frees what other streams used last
        return torch.cuda.memory_allocated()

    turn()
    before = turn()
    assert turn() <= before
