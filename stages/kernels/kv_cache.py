"""Stores the keys and values of many sequences, so that neighbours can be read in one call.

A slab is one tensor with rows of equal capacity; a slot is a row of a slab. A sequence that
outgrows its slot is copied once into a slot of twice the capacity. So memory stays within twice
what is needed, and most steps copy nothing. A slab without used slots is freed at once.
This module does not know what a request is, nor how attention reads the cache.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
import torch

MIN_CAPACITY = 256  # tokens
SLAB_TOKENS = 2048  # enough to be worth the overhead of one attention call per slab


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What one token needs, the device, and how many tokens a sequence may have."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
    max_tokens: int
    dtype: torch.dtype
    device: torch.device


class Slab:
    """Rows of `capacity` tokens: `storage` is [2 * layers, rows, kv_heads, capacity, head_dim].

    A layer's keys come before its values. `flat` has one writable view per layer,
    [2 * rows * kv_heads * capacity, head_dim]. With `num_rows` the storage starts as zeros:
    attention reads whole rows beside a longer one and masks them, so they must hold numbers.
    Without it, the slab has rows for `SLAB_TOKENS` tokens, with undefined content.
    """

    def __init__(self, shape: CacheShape, capacity: int, num_rows: int | None = None) -> None:
        self.shape = shape
        self.capacity = capacity
        self.num_rows = num_rows or max(1, SLAB_TOKENS // capacity)
        self.free = list(range(self.num_rows))
        size = (2 * shape.num_layers, self.num_rows, shape.num_kv_heads, capacity, shape.head_dim)
        make = _zeros if num_rows else torch.empty
        self.storage = make(size, dtype=shape.dtype, device=shape.device)
        self.flat = self.storage.view(shape.num_layers, -1, shape.head_dim).unbind(0)


def _zeros(size: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros. On a CPU they come from NumPy, whose zeros take memory only when written to."""
    if device.type != "cpu":
        return torch.zeros(size, dtype=dtype, device=device)
    raw = torch.from_numpy(np.zeros(math.prod(size) * dtype.itemsize, np.uint8))
    return raw.view(dtype).view(size)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of one sequence: a row of a slab."""

    slab: Slab
    row: int


@dataclass(slots=True)
class KvCache:
    """All slabs of one model, by their capacity."""

    shape: CacheShape
    _slabs: dict[int, list[Slab]] = field(default_factory=dict)

    @property
    def num_slabs(self) -> int:
        """How many slabs are allocated."""
        return sum(len(slabs) for slabs in self._slabs.values())

    def reserve(self, slot: Slot | None, used: int, needed: int) -> Slot:
        """A slot for `needed` tokens: `slot` if it is large enough, else a larger one.

        The first `used` tokens are copied to the larger slot, and `slot` is released. Raises
        ValueError if `needed` is more than a sequence may have.
        """
        if slot is None:
            return self._allocate(needed)
        if needed <= slot.slab.capacity:
            return slot
        larger = self._allocate(needed)
        source = slot.slab.storage[:, slot.row, :, :used]
        larger.slab.storage[:, larger.row, :, :used].copy_(source)
        self.release(slot)
        return larger

    def read(self, slot: Slot, used: int) -> torch.Tensor:
        """A copy of a slot's first `used` tokens: [2 * layers, kv_heads, used, head_dim]."""
        return slot.slab.storage[:, slot.row, :, :used].clone()

    def write(self, slot: Slot, content: torch.Tensor) -> None:
        """Write `content`, from `read`, to the first tokens of a slot that is large enough."""
        slot.slab.storage[:, slot.row, :, : content.shape[2]].copy_(content)

    def release(self, slot: Slot) -> None:
        """Free a slot; its content is lost."""
        slab = slot.slab
        heapq.heappush(slab.free, slot.row)
        if len(slab.free) == slab.num_rows:
            self._slabs[slab.capacity].remove(slab)

    def _allocate(self, needed: int) -> Slot:
        slabs = self._slabs.setdefault(self._capacity(needed), [])
        open_slabs = [slab for slab in slabs if slab.free]
        if not open_slabs:
            open_slabs = [Slab(self.shape, self._capacity(needed))]
            slabs.append(open_slabs[0])
        fullest = min(open_slabs, key=lambda slab: len(slab.free))
        row = heapq.heappop(fullest.free)
        if fullest.num_rows > 1:
            # Attention reads all of a row beside a longer one and masks it: it must hold numbers.
            fullest.storage[:, row].zero_()
        return Slot(fullest, row)

    def _capacity(self, needed: int) -> int:
        if needed > self.shape.max_tokens:
            raise ValueError(
                f"{needed} tokens are too many: a sequence may have {self.shape.max_tokens}"
            )
        doubled = max(MIN_CAPACITY, 1 << (needed - 1).bit_length())
        return min(doubled, self.shape.max_tokens)
