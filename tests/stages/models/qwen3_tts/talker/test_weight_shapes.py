"""The name and shape of every tensor of a talker are checked."""

import pytest

from stages.contract.errors import CheckpointError
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.weight_shapes import check_weight_shapes
from stages.weights.safetensors import Weights
from tests.qwen3_tts.checkpoint import KINDS


class RecordedChecks:
    """In place of weights: records the shapes that are checked."""

    def __init__(self):
        self.shapes = {}

    def check(self, name, *shape):
        self.shapes[name] = shape


@pytest.mark.parametrize("kind", KINDS)
def test_the_shapes_of_all_tensors_are_checked(kind, checkpoints):
    folder = checkpoints[kind]
    checks = RecordedChecks()
    check_weight_shapes(read_config(folder), checks)
    weights = Weights(folder)
    names = [name for name in weights if not name.startswith("speaker_encoder.")]
    assert checks.shapes == {name: tuple(weights[name].shape) for name in names}


def test_a_tensor_of_the_wrong_shape_is_named(checkpoints):
    with pytest.raises(CheckpointError, match=r"'talker\.code_predictor\.lm_head\.0\.weight' is"):
        check_weight_shapes(read_config(checkpoints["custom_voice"]), Weights(checkpoints["base"]))
