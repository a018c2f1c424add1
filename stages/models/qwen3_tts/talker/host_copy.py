"""Brings a few numbers per step from the device to the host, waiting for them and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class HostCopy:
    """`start` after the work that makes the numbers, `wait` when they are needed.

    On a GPU the host waits for the event behind the copy; what was launched after it still runs.
    """

    def __init__(self, device: torch.device, size: int) -> None:
        on_gpu = device.type == "cuda"
        self._event = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]
        self._numbers = torch.zeros(size, dtype=torch.int64, pin_memory=on_gpu)
        self._size = 0

    def start(self, numbers: Tensor) -> None:
        """Copy int64 [at most size]."""
        self._size = len(numbers)
        self._numbers[: self._size].copy_(numbers, non_blocking=True)
        if self._event is not None:
            self._event.record()

    def wait(self) -> list[int]:
        """What was copied last."""
        if self._event is not None:
            self._event.synchronize()
        numbers: list[int] = self._numbers[: self._size].tolist()
        return numbers
