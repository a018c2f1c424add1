"""What is read from the configuration of a checkpoint, and how many sequences fit into memory."""

import json

import pytest
import torch

from stages.contract.errors import CheckpointError, StartError
from stages.kernels.kv_cache import CacheShape
from stages.models.qwen3_tts.talker.memory_budget import cache_bytes_per_row, num_rows_within
from stages.models.qwen3_tts.talker.model_config import SamplingConfig, read_config
from tests.qwen3_tts import sizes
from tests.qwen3_tts.checkpoint import write_json


@pytest.fixture
def config_with(tmp_path):
    """A function that writes a configuration with changes, and reads it."""

    def read(kind="custom_voice", generation=sizes.SAMPLED, talker=(), **changes):
        config = {**sizes.model_config(kind), **changes}
        config["talker_config"] = {**config["talker_config"], **dict(talker)}
        write_json(tmp_path / "config.json", config)
        write_json(tmp_path / "generation_config.json", generation)
        return read_config(tmp_path)

    return read


@pytest.mark.parametrize(
    ("kind", "size", "follows"),
    [
        ("custom_voice", "1b7", True),
        ("custom_voice", "0b6", False),
        ("voice_design", "1b7", True),
        ("base", "1b7", False),
    ],
)
def test_which_checkpoints_follow_instructions(kind, size, follows, config_with):
    assert config_with(kind, tts_model_size=size).follows_instructions is follows


def test_sampling_is_the_files_and_missing_values_are_the_packages(config_with):
    missing = config_with(generation={})
    assert (missing.first, missing.rest) == (
        SamplingConfig(0.9, 50, 1.0),
        SamplingConfig(0.9, 50, 1.0),
    )
    assert missing.repetition_penalty == 1.05
    own = {"do_sample": False, "subtalker_top_k": 7, "subtalker_temperature": 1}
    read = config_with(generation=own)
    assert (read.first.temperature, read.rest) == (0.0, SamplingConfig(1.0, 7, 1.0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "qwen3"}, "no Qwen3-TTS"),
        ({"tokenizer_type": "qwen3_tts_tokenizer_25hz"}, "only the 12 Hz family"),
        ({"tts_model_type": "singer"}, "tts_model_type is 'singer'"),
        ({"talker": {"hidden_size": None}}, r"'talker_config\.hidden_size' is missing"),
        ({"talker": {"hidden_size": "64"}}, r"'talker_config\.hidden_size' is '64'"),
        ({"talker": {"hidden_act": "gelu"}}, "gated SiLU"),
        ({"talker": {"rope_scaling": {"rope_type": "yarn"}}}, "rope_scaling"),
        ({"talker": {"rope_scaling": {"mrope_section": [1, 2, 3]}}}, "rope_scaling"),
    ],
)
def test_an_unsupported_value_is_refused_by_name(changes, message, config_with):
    with pytest.raises(CheckpointError, match=message):
        config_with(**changes)


def test_there_are_as_many_rows_as_fit_into_memory():
    shape = CacheShape(28, 8, 128, 32768, torch.bfloat16, torch.device("cpu"))
    row = cache_bytes_per_row(shape, 4096)
    assert row == 28 * 2 * 8 * 128 * 4096 * 2
    assert num_rows_within(100 * row, row, 16) == 16
    assert num_rows_within(5 * row + 1, row, 16) == 5
    with pytest.raises(StartError, match="448 MB"):
        num_rows_within(row - 1, row, 16)


def test_a_configuration_that_is_no_object_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps([1]))
    with pytest.raises(CheckpointError, match="no JSON object"):
        read_config(tmp_path)
