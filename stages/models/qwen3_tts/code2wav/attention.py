"""Attention over a sliding window. Its KV cache is a slice of the stream's streaming state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.linear import Linear

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.code2wav.module import Module
    from stages.models.qwen3_tts.code2wav.streaming_state import StateLayout, StreamingState


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Sizes of the attention. `window` includes the current row."""

    hidden_size: int
    num_heads: int
    head_dim: int
    window: int
    rope_theta: float


@dataclass(frozen=True, slots=True)
class AttentionInputs:
    """What all layers of a forward pass share.

    `cosines` and `sines` [streams, time, 1, head_dim] are the rotary embedding of each row (Su et
    al. 2021, in half-split order). `visible` [streams, 1, time, keys] is the attention mask.
    """

    cosines: Tensor
    sines: Tensor
    visible: Tensor

    @staticmethod
    def of(
        shape: AttentionShape, state: StreamingState, num_rows: int, dtype: torch.dtype
    ) -> AttentionInputs:
        """The inputs for the next `num_rows` rows."""
        device = state.positions.device
        before = shape.window - 1
        half = torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim
        steps = torch.arange(num_rows, device=device)
        angles = (state.positions[:, None] + steps)[..., None, None] * shape.rope_theta**-half
        cosines, sines = angles.cos(), angles.sin()
        key = torch.arange(before + num_rows, device=device) - steps[:, None]
        in_window = (key >= 0) & (key <= before)
        exists = torch.arange(before + num_rows, device=device) >= before - state.positions[:, None]
        return AttentionInputs(
            torch.cat([cosines, cosines], -1).to(dtype),
            torch.cat([-sines, sines], -1).to(dtype),
            (in_window & exists[:, None])[:, None],
        )


class WindowedAttention:
    """Maps [streams, time, hidden] to the same shape, scaled by `scale` for each channel."""

    def __init__(
        self,
        layout: StateLayout,
        module: Module,
        shape: AttentionShape,
        scale: Tensor,
        dtype: torch.dtype,
    ) -> None:
        self._shape = shape
        width = shape.num_heads * shape.head_dim
        parts = [module.take(f"{name}_proj.weight", width, shape.hidden_size) for name in "qkv"]
        out = module.take("o_proj.weight", shape.hidden_size, width)
        self._qkv = Linear(torch.cat(parts), dtype)
        self._out = Linear(out * scale[:, None], dtype)
        self._slice = layout.add(shape.window - 1, 2 * width)

    def __call__(self, rows: Tensor, state: StreamingState, inputs: AttentionInputs) -> Tensor:
        streams, time, _ = rows.shape
        shape = self._shape
        x = self._qkv(rows.flatten(0, 1)).view(streams, time, -1, shape.head_dim)
        rotated = x[:, :, : 2 * shape.num_heads]
        swapped = rotated.roll(shape.head_dim // 2, -1)
        rotated.mul_(inputs.cosines).addcmul_(swapped, inputs.sines)
        joined = state.with_left_context(self._slice, x[:, :, shape.num_heads :].flatten(2))
        keys, values = joined.view(streams, -1, 2, shape.num_heads, shape.head_dim).permute(
            2, 0, 3, 1, 4
        )
        attended = functional.scaled_dot_product_attention(
            x[:, :, : shape.num_heads].transpose(1, 2), keys, values, attn_mask=inputs.visible
        )
        return self._out(attended.transpose(1, 2).reshape(streams * time, -1)).view(
            streams, time, -1
        )
