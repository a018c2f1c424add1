"""The real model, loaded once for all tests that need it."""

import json
from dataclasses import asdict, replace

import pytest
import torch
from safetensors.torch import load_file

from stages.kernels.transformer import Transformer, TransformerConfig
from stages.models.llama.config import ThinkerConfig
from stages.models.llama.model_files import ModelFiles
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
def transformer(model_files, weights):
    config = TransformerConfig(**model_files.read_settings().transformer)
    return Transformer(config, weights, torch.device("cpu"), torch.float32)


@pytest.fixture(scope="session")
def loaded_stage(model_cache_dir):
    stage = ThinkerStage(ThinkerConfig(model_cache_dir, device="cpu", dtype="float32", max_batch=8))
    stage.load()
    stage.warm()
    return stage


@pytest.fixture
def stage(loaded_stage):
    """The stage; checks afterwards that the test left no request and no cache memory behind."""
    yield loaded_stage
    assert loaded_stage.num_open == 0
    assert loaded_stage.num_slabs == 0


@pytest.fixture(scope="session")
def small_stage(model_files, tmp_path_factory):
    """The same model with a context of 512 tokens, and without a prefix cache."""
    cache_dir = tmp_path_factory.mktemp("models")
    files = ModelFiles(cache_dir / model_files.directory.name)
    files.directory.mkdir()
    files.weights.symlink_to(model_files.weights.resolve())
    files.tokenizer.symlink_to(model_files.tokenizer.resolve())
    settings = model_files.read_settings()
    settings = replace(settings, transformer=settings.transformer | {"max_tokens": 512})
    files.settings.write_text(json.dumps(asdict(settings)), "utf-8")
    stage = ThinkerStage(ThinkerConfig(cache_dir, "cpu", "float32", max_kept_tokens=0))
    stage.load()
    return stage
