"""The streaming state of causal layers: the left context that each layer needs for its next rows.

All state of one stream is one flat row of values. Each layer owns a slice of that row, assigned
while the model is built. A new stream starts with zeros, because a causal convolution reads zeros
before the signal begins. Streams are stacked, computed in one batch, and taken apart again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class StateSlice:
    """Where a layer keeps its last `num_rows` rows of `num_channels` in the row of values."""

    begin: int
    num_rows: int
    num_channels: int


class StateLayout:
    """Assigns slices to layers. `size` is the number of values that a stream needs so far."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, num_rows: int, num_channels: int) -> StateSlice:
        """Assign the next free slice to a layer."""
        added = StateSlice(self.size, num_rows, num_channels)
        self.size += num_rows * num_channels
        return added


@dataclass(frozen=True, slots=True)
class StreamingState:
    """The state of a batch of streams.

    `values` [streams, size] is updated in place. `positions` [streams] is the number of frames that
    each stream has decoded.
    """

    values: Tensor
    positions: Tensor

    def with_left_context(self, layer: StateSlice, rows: Tensor) -> Tensor:
        """Put a layer's left context before `rows` [streams, time, channels].

        The last rows of the result become the context of the next call.
        """
        if not layer.num_rows:
            return rows
        end = layer.begin + layer.num_rows * layer.num_channels
        context = self.values[:, layer.begin : end].view(
            len(rows), layer.num_rows, layer.num_channels
        )
        joined = torch.cat([context, rows], 1)
        context.copy_(joined[:, -layer.num_rows :])
        return joined
