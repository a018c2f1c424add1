"""code2wav passes the conformance suite."""

import pytest
import torch

from stages.contract.messages import Code2WavParams, LatentChunk
from tests.stages.stage_conformance import *  # noqa: F403
from tests.stages.stage_conformance import Subject

pytestmark = pytest.mark.model


def piece(num_frames):
    """A piece in two chunks, with a pause."""
    frames = torch.randn(num_frames, 192, generator=torch.Generator().manual_seed(num_frames))
    return [
        LatentChunk(frames[:4], first=True, last=False),
        LatentChunk(frames[4:], first=False, last=True, pause_s=0.1),
    ]


@pytest.fixture
def subject(code2wav):
    pieces = {"a": [*piece(40), *piece(9)], "b": piece(12), "c": piece(70)}
    return Subject(code2wav, {name: (Code2WavParams("joe"), each) for name, each in pieces.items()})
