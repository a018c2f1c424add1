"""What all tests share: asyncio as the only backend, and where converted weights are kept."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def model_cache_dir():
    return Path.home() / ".cache" / "nano-omni"
