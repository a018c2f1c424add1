"""Turns the names of devices and number formats in settings into torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Sequence


def pick_device(name: str) -> torch.device:
    """`cpu`, `cuda`, `cuda:N`, or `auto`: the first GPU where there is one.

    Raises StartError where the machine has no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise StartError(f"setting device: torch finds no {name} here")
    return device


def pick_dtype(name: str) -> torch.dtype:
    """`float32`, `bfloat16`, or `auto` (float32). Raises KeyError for another name."""
    return {"auto": torch.float32, "float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def on_device(numbers: Sequence[int], device: torch.device) -> torch.Tensor:
    """int64 [n] on the device, which the host does not wait for."""
    tensor = torch.tensor(numbers, dtype=torch.int64)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def step_tokens(device: torch.device, dtype: torch.dtype) -> int:
    """How many prompt tokens fit into a step of about 100 ms, on one thread of a CPU."""
    if device.type != "cpu":
        return 2048
    return 64 if dtype == torch.float32 else 128
