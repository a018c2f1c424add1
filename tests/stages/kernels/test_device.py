"""Devices by the names that settings give them."""

import pytest
import torch

from stages.contract.errors import StartError
from stages.kernels.device import pick_device


def test_a_device_that_is_not_there_is_refused_by_the_settings_name():
    beyond = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(StartError, match=f"setting device: .* {beyond}"):
        pick_device(beyond)


def test_auto_is_a_device_that_is_there():
    assert torch.zeros(1, device=pick_device("auto")).sum() == 0


@pytest.mark.parametrize(
    ("name", "device"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_a_gpu_has_its_number(monkeypatch, name, device):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device(name) == torch.device(device)
