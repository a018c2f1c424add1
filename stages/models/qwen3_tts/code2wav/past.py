"""What causal layers keep of the rows that came before, so that a stream goes on where it stopped.

All that a model keeps of one stream lies in one row of numbers, zeros at the start: for a causal
convolution zeros are what lies before the signal. Each layer has its place in the row, given out
while the model is built. Streams are stacked, computed together, and taken apart again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a layer's last `num_rows` rows of `num_channels` lie."""

    begin: int
    num_rows: int
    num_channels: int


class Layout:
    """Gives out places; `size` is how many numbers a stream needs so far."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, num_rows: int, num_channels: int) -> Place:
        """A place for a layer."""
        place = Place(self.size, num_rows, num_channels)
        self.size += num_rows * num_channels
        return place


@dataclass(frozen=True, slots=True)
class Past:
    """What was before some streams' next rows: `numbers` [streams, size], changed in place, and
    `positions` [streams], how many frames each has had."""

    numbers: Tensor
    positions: Tensor

    def extend(self, place: Place, rows: Tensor) -> Tensor:
        """[streams, time, channels] with the rows before it in front; its last ones are kept."""
        if not place.num_rows:
            return rows
        end = place.begin + place.num_rows * place.num_channels
        kept = self.numbers[:, place.begin : end].view(
            len(rows), place.num_rows, place.num_channels
        )
        joined = torch.cat([kept, rows], 1)
        kept.copy_(joined[:, -place.num_rows :])
        return joined
