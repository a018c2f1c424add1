"""Devices and dtypes by their names in the settings."""

import pytest
import torch

from stages.contract.errors import StartError
from stages.kernels.device import AutoDtype, pick_device, pick_dtype


def test_a_missing_device_is_refused_with_the_name_of_the_setting():
    beyond = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(StartError, match=f"setting device: .* {beyond}"):
        pick_device(beyond)


def test_auto_is_a_device_of_this_machine():
    assert torch.zeros(1, device=pick_device("auto")).sum() == 0


@pytest.mark.parametrize(
    ("name", "device"), [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1")]
)
def test_a_gpu_has_its_number(monkeypatch, name, device):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert pick_device(name) == torch.device(device)


@pytest.mark.parametrize(
    ("auto", "on_gpu", "on_bfloat16_cpu"),
    [
        (AutoDtype.LANGUAGE_MODEL, torch.bfloat16, torch.bfloat16),
        (AutoDtype.SPEECH_LANGUAGE_MODEL, torch.bfloat16, torch.float32),
        (AutoDtype.VOICE_DECODER, torch.float32, torch.bfloat16),
        (AutoDtype.CODEC_DECODER, torch.float32, torch.float32),
    ],
)
def test_auto_depends_on_the_kind_of_stage_and_the_device(
    monkeypatch, auto, on_gpu, on_bfloat16_cpu
):
    cpu, gpu = torch.device("cpu"), torch.device("cuda:0")
    monkeypatch.setattr("stages.kernels.device.CPU_MULTIPLIES_BFLOAT16", True)
    assert pick_dtype("auto", gpu, auto) == on_gpu
    assert pick_dtype("auto", cpu, auto) == on_bfloat16_cpu
    monkeypatch.setattr("stages.kernels.device.CPU_MULTIPLIES_BFLOAT16", False)
    assert pick_dtype("auto", cpu, auto) == torch.float32


def test_a_named_dtype_is_the_same_for_every_stage_and_device():
    for auto in AutoDtype:
        for device in (torch.device("cpu"), torch.device("cuda:0")):
            assert pick_dtype("float32", device, auto) == torch.float32
            assert pick_dtype("bfloat16", device, auto) == torch.bfloat16


def test_an_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match=r"auto, float32 or bfloat16, not 'float8'"):
        pick_dtype("float8", torch.device("cpu"), AutoDtype.LANGUAGE_MODEL)
