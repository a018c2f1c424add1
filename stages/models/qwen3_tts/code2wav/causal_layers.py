"""Causal layers over [streams, time, channels] that continue where each stream stopped.

A convolution is one matrix product: the rows that its taps read are laid side by side. For the few
rows of a frame this is faster than torch's convolutions, which reorder their weights in every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.linear import Linear

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.code2wav.module import Module
    from stages.models.qwen3_tts.code2wav.streaming_state import StateLayout, StreamingState


class CausalConv:
    """A convolution whose output at a row depends on that row and the rows before it.

    `weight` is [out, in, taps]. The last tap is for the current row (torch's order).
    """

    def __init__(
        self,
        layout: StateLayout,
        weight: Tensor,
        bias: Tensor,
        dtype: torch.dtype,
        dilation: int = 1,
    ) -> None:
        _, channels, self._taps = weight.shape
        self._dilation = dilation
        self._slice = layout.add((self._taps - 1) * dilation, channels)
        flat = weight.transpose(1, 2).flatten(1)
        self._linear = Linear(flat.contiguous(), dtype, bias)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        streams, time, channels = rows.shape
        joined = state.with_left_context(self._slice, rows)
        if self._taps > 1:
            shape = (streams, time, self._taps, channels)
            joined = joined.as_strided(
                shape, (joined.stride(0), channels, self._dilation * channels, 1)
            )
        return self._linear(joined.reshape(streams * time, -1)).view(streams, time, -1)


class CausalTransposedConv:
    """A transposed convolution without its right end: `stride` output rows for each input row.

    `weight` is [in, out, size]; `size` is a multiple of `stride`. The outputs of a row depend on
    that row and the `size / stride - 1` rows before it. So this is computed as a causal convolution
    with `stride` times the output channels.
    """

    def __init__(
        self, layout: StateLayout, weight: Tensor, bias: Tensor, dtype: torch.dtype, stride: int
    ) -> None:
        channels, self._out, size = weight.shape
        taps = weight.view(channels, self._out, size // stride, stride).flip(2)
        flat = taps.permute(3, 1, 0, 2).reshape(stride * self._out, channels, size // stride)
        self._conv = CausalConv(layout, flat, bias.repeat(stride), dtype)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        return self._conv(rows, state).view(len(rows), -1, self._out)


class CausalDepthwiseConv:
    """A causal convolution of each channel on its own. `weight` is [channels, 1, taps]."""

    def __init__(
        self, layout: StateLayout, weight: Tensor, bias: Tensor, dtype: torch.dtype
    ) -> None:
        channels, _, taps = weight.shape
        self._slice = layout.add(taps - 1, channels)
        self._weight = weight[:, 0].T.to(dtype).contiguous()
        self._bias = bias.to(dtype)

    def __call__(self, rows: Tensor, state: StreamingState) -> Tensor:
        joined = state.with_left_context(self._slice, rows)
        total = self._bias
        for tap, weight in enumerate(self._weight):
            total = torch.addcmul(total, joined[:, tap : tap + rows.shape[1]], weight)
        return total


class Snake:
    """The activation x + sin²(ax) / b, per channel (Ziyin et al. 2020, arXiv 2006.08195).

    The weights `alpha` and `beta` are the logarithms of a and b.
    """

    def __init__(self, module: Module, channels: int, dtype: torch.dtype) -> None:
        self._alpha = module.take("alpha", channels).exp().to(dtype)
        self._inverse_beta = (1 / (module.take("beta", channels).exp() + 1e-9)).to(dtype)

    def __call__(self, rows: Tensor) -> Tensor:
        wave = (rows * self._alpha).sin_().square_()
        return torch.addcmul(rows, wave, self._inverse_beta)
