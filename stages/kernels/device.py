"""Devices and dtypes: what their names in the settings mean, and how tensors get to a device."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import torch

from stages.contract.errors import StartError
from stages.kernels.private_ops import CPU_MULTIPLIES_BFLOAT16

if TYPE_CHECKING:
    from collections.abc import Sequence

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class AutoDtype(Enum):
    """What the dtype `auto` means for each kind of stage.

    The value says where it means bfloat16: (on a GPU, on a CPU that multiplies bfloat16). Anywhere
    else it means float32. The talker of Piper voices is not listed: it always takes float32.
    """

    LANGUAGE_MODEL = (True, True)  # docs/decisions/0004-thinker-bfloat16.md
    SPEECH_LANGUAGE_MODEL = (True, False)
    VOICE_DECODER = (False, True)  # docs/decisions/0067-decoder-bfloat16.md
    CODEC_DECODER = (False, False)


def pick_dtype(name: str, device: torch.device, auto: AutoDtype) -> torch.dtype:
    """`float32`, `bfloat16`, or `auto`: see `AutoDtype`. Raises ValueError for another name."""
    if name == "auto":
        on_gpu, on_cpu = auto.value
        is_bfloat16 = on_cpu and CPU_MULTIPLIES_BFLOAT16 if device.type == "cpu" else on_gpu
        return torch.bfloat16 if is_bfloat16 else torch.float32
    if name not in _DTYPES:
        raise ValueError(f"dtype must be auto, {' or '.join(_DTYPES)}, not {name!r}")
    return _DTYPES[name]


def pick_device(name: str) -> torch.device:
    """`cpu`, `cuda:N`, `cuda` (the first GPU), or `auto` (the first GPU, else the CPU).

    A GPU always gets its number, because torch.cuda cannot set a device without one. Raises
    StartError if the machine has no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device("cuda:0" if name == "cuda" else name)
    if device.type == "cuda" and device.index >= torch.cuda.device_count():
        raise StartError(
            f"setting device: torch finds no {name} here; use auto, cpu or a GPU of this machine"
        )
    return device


def enter_stream(device: torch.device) -> None:
    """Make the device this thread's own, and on a GPU give the thread a stream of its own.

    On the stream that all threads share, stages would wait for each other's work.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.set_stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]


def on_device(numbers: Sequence[int], device: torch.device) -> torch.Tensor:
    """The numbers as int64 [n] on the device; the host does not wait for the copy."""
    return bring(torch.tensor(numbers, dtype=torch.int64), device)


def bring(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Copy a host tensor to the device; the host does not wait for the copy."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def step_tokens(device: torch.device, dtype: torch.dtype) -> int:
    """How many prompt tokens a step of about 100 ms can read (on a CPU: with one thread)."""
    if device.type != "cpu":
        return 2048
    return 64 if dtype == torch.float32 else 128
