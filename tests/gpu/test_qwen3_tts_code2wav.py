"""code2wav on a GPU: graphs and batches give the samples of the public package."""

import numpy as np
import pytest
import torch

from stages.contract.messages import CodecChunk
from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.code2wav.stage import QwenCode2WavStage
from tests.stages.models.qwen3_tts.code2wav.driver import Clock, StageDriver

TOLERANCE = 12  # of 32,768: a GPU sums in another order than a CPU


@pytest.fixture(scope="module")
def stage(checkpoints):
    config = QwenCode2WavConfig(checkpoints["custom_voice"] / "speech_tokenizer", "cuda")
    before = torch.cuda.current_stream()
    stage = QwenCode2WavStage(config, Clock())
    stage.load()
    stage.warm()
    yield stage
    torch.cuda.set_stream(before)


def chunks_of(codes, size):
    chunks = [CodecChunk(part) for part in codes.cuda().split(size)]
    torch.cuda.synchronize()  # codes are complete when they are sent
    return chunks


def samples_of(audio):
    return np.concatenate([chunk.samples for chunk in audio]).astype(int)


def test_samples_are_the_packages_however_they_are_cut_and_batched(stage, values):
    codes = values["code2wav.codes"]
    expected = np.rint(values["code2wav.samples"].numpy() * 32767).astype(int)
    driver = StageDriver(stage)
    for number in range(11):  # between two sizes of graphs
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


def test_closing_a_request_frees_its_memory(stage, values):
    def used_bytes():
        driver = StageDriver(stage)
        for number in range(8):
            driver.open(f"{number}", chunks_of(values["code2wav.codes"], 4))
        driver.run()
        torch.cuda.synchronize()
        torch.empty(1, device="cuda")  # an allocation frees what other CUDA streams used
        return torch.cuda.memory_allocated()

    used_bytes()
    before = used_bytes()
    assert used_bytes() <= before
