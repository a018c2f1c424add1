"""What all tests share: asyncio as the only backend, and where converted weights are kept."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

if find_spec("ray") is None:  # an extra
    collect_ignore = ["ray", "stages/runtime/connectors/test_remote.py"]


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def model_cache_dir():
    return Path.home() / ".cache" / "nano-omni"
