"""A small codec with random weights."""

import pytest
import torch

from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.code2wav.decoder import Decoder
from stages.models.qwen3_tts.code2wav.model_config import read_codec_config
from stages.models.qwen3_tts.code2wav.stage import QwenCode2WavStage
from stages.weights.safetensors import Weights
from tests.qwen3_tts.checkpoint import write_checkpoint
from tests.stages.models.qwen3_tts.code2wav.driver import Clock, StageDriver


@pytest.fixture(scope="session")
def codec(tmp_path_factory):
    """The folder of the codec."""
    folder = tmp_path_factory.mktemp("qwen3-tts-codec") / "custom_voice"
    return write_checkpoint(folder, "custom_voice") / "speech_tokenizer"


@pytest.fixture(scope="session")
def load_decoder():
    """A function that loads the decoder of a folder, on the CPU."""

    def load(folder, dtype=torch.float32):
        return Decoder(read_codec_config(folder), Weights(folder), torch.device("cpu"), dtype)

    return load


@pytest.fixture(scope="session")
def decoder(codec, load_decoder):
    return load_decoder(codec)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def driver(codec, clock):
    stage = QwenCode2WavStage(QwenCode2WavConfig(codec, "cpu"), clock)
    stage.load()
    return StageDriver(stage)
