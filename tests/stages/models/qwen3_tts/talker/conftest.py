"""Small checkpoints, written once, and a function that loads their models."""

import pytest
import torch

from stages.models.qwen3_tts.talker.decode_batch import DecodeBatch
from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.weights.safetensors import Weights
from tests.qwen3_tts import sizes
from tests.qwen3_tts.checkpoint import KINDS, write_checkpoint

CPU = torch.device("cpu")


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Folders of checkpoints by kind. They choose codes greedily."""
    folder = tmp_path_factory.mktemp("qwen3-tts")
    return {kind: write_checkpoint(folder / kind, kind) for kind in KINDS}


@pytest.fixture(scope="session")
def sampling_checkpoint(tmp_path_factory):
    """A checkpoint that samples its codes, as the public ones do."""
    folder = tmp_path_factory.mktemp("qwen3-tts-sampled") / "custom_voice"
    return write_checkpoint(folder, "custom_voice", sizes.SAMPLED)


@pytest.fixture(scope="session")
def make_batch():
    """A function that loads the models of a checkpoint, with a batch for them."""

    def make(folder, num_rows=4, max_tokens=256):
        config, weights = read_config(folder), Weights(folder)
        talker = TalkerModel(config, weights, CPU, torch.float32)
        predictor = CodePredictor(talker, weights, torch.float32)
        return talker, predictor, DecodeBatch(talker, predictor, num_rows, max_tokens)

    return make
