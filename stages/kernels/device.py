"""Turns the names of devices and number formats in settings into torch's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.contract.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Sequence


def pick_device(name: str) -> torch.device:
    """`cpu`, `cuda:N`, `cuda` (the first), or `auto`: the first GPU where there is one.

    A GPU always has its number: torch.cuda refuses to set a device without. Raises StartError where
    the machine has no such device.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device("cuda:0" if name == "cuda" else name)
    if device.type == "cuda" and device.index >= torch.cuda.device_count():
        raise StartError(f"setting device: torch finds no {name} here")
    return device


def enter_stream(device: torch.device) -> None:
    """Let this thread compute on its device, and there in a stream of its own.

    On the stream that all threads share, stages would wait for each other's work.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
        torch.cuda.set_stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]


def pick_dtype(name: str) -> torch.dtype:
    """`float32`, `bfloat16`, or `auto` (float32). Raises KeyError for another name."""
    return {"auto": torch.float32, "float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def on_device(numbers: Sequence[int], device: torch.device) -> torch.Tensor:
    """int64 [n] on the device; see `bring`."""
    return bring(torch.tensor(numbers, dtype=torch.int64), device)


def bring(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor of the host on the device, which the host does not wait for."""
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def step_tokens(device: torch.device, dtype: torch.dtype) -> int:
    """How many prompt tokens fit into a step of about 100 ms, on one thread of a CPU."""
    if device.type != "cpu":
        return 2048
    return 64 if dtype == torch.float32 else 128
