"""Attention over a sliding window, its keys and values kept as causal layers keep their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.linear import Linear

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.code2wav.module import Module
    from stages.models.qwen3_tts.code2wav.past import Layout, Past


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """`window` counts the present row; `theta` is the rotary positions' base."""

    hidden_size: int
    num_heads: int
    head_dim: int
    window: int
    theta: float


@dataclass(frozen=True, slots=True)
class View:
    """What all layers of a pass share: the rotary turn of each row [streams, time, 1, head_dim]
    (Su et al. 2021, in half-split order), and which keys it may see [streams, 1, time, keys]."""

    cosines: Tensor
    sines: Tensor
    visible: Tensor

    @staticmethod
    def of(shape: AttentionShape, past: Past, num_rows: int, dtype: torch.dtype) -> View:
        """That of the next `num_rows` rows."""
        device = past.positions.device
        before = shape.window - 1
        half = torch.arange(0, shape.head_dim, 2, device=device) / shape.head_dim
        steps = torch.arange(num_rows, device=device)
        angles = (past.positions[:, None] + steps)[..., None, None] * shape.theta**-half
        cosines, sines = angles.cos(), angles.sin()
        key = torch.arange(before + num_rows, device=device) - steps[:, None]
        near = (key >= 0) & (key <= before)
        real = torch.arange(before + num_rows, device=device) >= before - past.positions[:, None]
        return View(
            torch.cat([cosines, cosines], -1).to(dtype),
            torch.cat([-sines, sines], -1).to(dtype),
            (near & real[:, None])[:, None],
        )


class WindowedAttention:
    """[streams, time, hidden] to the same, scaled by `scale` for each channel."""

    def __init__(
        self,
        layout: Layout,
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
        self._place = layout.add(shape.window - 1, 2 * width)

    def __call__(self, rows: Tensor, past: Past, view: View) -> Tensor:
        streams, time, _ = rows.shape
        shape = self._shape
        x = self._qkv(rows.flatten(0, 1)).view(streams, time, -1, shape.head_dim)
        turned = x[:, :, : 2 * shape.num_heads]
        swapped = turned.roll(shape.head_dim // 2, -1)
        turned.mul_(view.cosines).addcmul_(swapped, view.sines)
        joined = past.extend(self._place, x[:, :, shape.num_heads :].flatten(2))
        keys, values = joined.view(streams, -1, 2, shape.num_heads, shape.head_dim).permute(
            2, 0, 3, 1, 4
        )
        seen = functional.scaled_dot_product_attention(
            x[:, :, : shape.num_heads].transpose(1, 2), keys, values, attn_mask=view.visible
        )
        return self._out(seen.transpose(1, 2).reshape(streams * time, -1)).view(streams, time, -1)
