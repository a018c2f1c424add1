"""The real model, loaded once for all tests that need it."""

import pytest
from safetensors.torch import load_file

from stages.models.llama.config import ThinkerConfig
from stages.models.llama.packaged_model import prepare
from stages.models.llama.prompts import SmolPrompts
from stages.models.llama.stage import ThinkerStage
from stages.models.llama.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def model_files(model_cache_dir):
    return prepare(model_cache_dir)


@pytest.fixture(scope="session")
def prompts(model_files):
    return SmolPrompts(model_files)


@pytest.fixture(scope="session")
def vocabulary(model_files):
    return Vocabulary(model_files.tokenizer)


@pytest.fixture(scope="session")
def weights(model_files):
    return load_file(model_files.weights)


@pytest.fixture(scope="session")
def loaded_stage(model_cache_dir):
    stage = ThinkerStage(ThinkerConfig(model_cache_dir, device="cpu", dtype="float32", max_batch=8))
    stage.load()
    stage.warm()
    return stage


@pytest.fixture
def stage(loaded_stage):
    """Checks that a test leaves nothing behind."""
    yield loaded_stage
    assert loaded_stage.num_open == 0
    assert loaded_stage.num_slabs == 0
