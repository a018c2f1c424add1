"""Devices by name."""

import pytest
import torch

from stages.device import pick_device


@pytest.mark.parametrize(
    ("name", "device"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_a_gpu_has_its_number(name, device):
    assert pick_device(name) == torch.device(device)
