"""What the public package computes from the small checkpoints."""

import pytest
from safetensors.torch import load_file

from tests.qwen3_tts.stored import VALUES


@pytest.fixture(scope="session")
def values():
    """The stored values of the public package."""
    return load_file(VALUES)
