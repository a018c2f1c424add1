"""The talker of the real voice, and the voice's weights."""

import pytest
import torch

from stages.kernels.convolution import Parameters
from stages.models.piper.talker import TalkerStage
from stages.models.piper.talker_config import TalkerConfig
from stages.weights.onnx import read_onnx


@pytest.fixture(scope="session")
def parameters(voice_path):
    return Parameters(read_onnx(voice_path), torch.device("cpu"), torch.float32)


@pytest.fixture(scope="session")
def talker():
    stage = TalkerStage(TalkerConfig(device="cpu"))
    stage.load()
    return stage
