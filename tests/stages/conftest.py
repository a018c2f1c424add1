"""What tests of several packages of the stages need: the voice that comes with the install."""

from pathlib import Path

import pytest
import torch

from stages.models.piper.voice_file import bundled_voices, read_voice


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Two threads beside other busy processes wait for each other at every operation."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def voice_path() -> Path:
    return bundled_voices()["joe"]


@pytest.fixture(scope="session")
def voice(voice_path):
    return read_voice(voice_path)
