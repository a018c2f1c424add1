"""Copies a few numbers per step to the host, and waits for nothing but that copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class HostCopy:
    """Call `start` after the work that computes the numbers, and `wait` when they are needed.

    On a GPU the host waits for an event after the copy. Work that was launched later keeps running.
    """

    def __init__(self, device: torch.device, size: int) -> None:
        on_gpu = device.type == "cuda"
        self._event = torch.cuda.Event() if on_gpu else None  # type: ignore[no-untyped-call]
        self._numbers = torch.zeros(size, dtype=torch.int64, pin_memory=on_gpu)
        self._size = 0

    def start(self, numbers: Tensor) -> None:
        """Begin to copy int64 numbers, at most `size` of them."""
        self._size = len(numbers)
        self._numbers[: self._size].copy_(numbers, non_blocking=True)
        if self._event is not None:
            self._event.record()

    def wait(self) -> list[int]:
        """Wait for the last copy. Returns its numbers."""
        if self._event is not None:
            self._event.synchronize()
        numbers: list[int] = self._numbers[: self._size].tolist()
        return numbers
