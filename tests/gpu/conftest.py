"""These tests need a CUDA device and are skipped without one: `pytest tests/gpu`."""

import pytest
import torch
from safetensors.torch import load_file

from tests.qwen3_tts import sizes
from tests.qwen3_tts.checkpoint import KINDS, write_checkpoint
from tests.qwen3_tts.stored import VALUES


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/gpu" in item.path.as_posix():
            item.add_marker(pytest.mark.gpu)
            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


@pytest.fixture(autouse=True)
def _exact_convolutions():
    """Turn off TF32 in convolutions: its results are close to float32, not equal."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


@pytest.fixture(autouse=True)
def _same_stream():
    """Restore the current CUDA stream: a stage that is loaded enters its own."""
    before = torch.cuda.current_stream()
    yield
    torch.cuda.set_stream(before)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory):
    """Greedy checkpoints by kind, and one that samples its codes: `sampled`."""
    folder = tmp_path_factory.mktemp("qwen3-tts")
    found = {kind: write_checkpoint(folder / kind, kind) for kind in KINDS}
    sampled = write_checkpoint(folder / "sampled", "custom_voice", sizes.SAMPLED)
    return {**found, "sampled": sampled}


@pytest.fixture(scope="session")
def values():
    """The stored values of the public package."""
    return load_file(VALUES)
