"""Causal layers over [streams, time, channels] that go on where each stream stopped.

A convolution is one matrix product over the rows that its taps read, laid side by side. That beats
torch's convolutions at the few rows of a frame: their weights would be reordered in every call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.linear import Linear

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.code2wav.module import Module
    from stages.models.qwen3_tts.code2wav.past import Layout, Past


class CausalConv:
    """A convolution whose output at a row reads that row and those before it.

    `weight` is [out, in, taps], the last tap for the present row (torch's order).
    """

    def __init__(
        self, layout: Layout, weight: Tensor, bias: Tensor, dtype: torch.dtype, dilation: int = 1
    ) -> None:
        _, channels, self._taps = weight.shape
        self._dilation = dilation
        self._place = layout.add((self._taps - 1) * dilation, channels)
        flat = weight.transpose(1, 2).flatten(1)
        self._linear = Linear(flat.contiguous(), dtype, bias)

    def __call__(self, rows: Tensor, past: Past) -> Tensor:
        streams, time, channels = rows.shape
        joined = past.extend(self._place, rows)
        if self._taps > 1:
            shape = (streams, time, self._taps, channels)
            joined = joined.as_strided(
                shape, (joined.stride(0), channels, self._dilation * channels, 1)
            )
        return self._linear(joined.reshape(streams * time, -1)).view(streams, time, -1)


class CausalUp:
    """A transposed convolution, its right end cut off: `stride` rows for each.

    `weight` is [in, out, size], `size` a multiple of `stride`. Each row's outputs read that row and
    `size / stride - 1` before it, so this is a causal convolution to `stride` times the channels.
    """

    def __init__(
        self, layout: Layout, weight: Tensor, bias: Tensor, dtype: torch.dtype, stride: int
    ) -> None:
        channels, self._out, size = weight.shape
        taps = weight.view(channels, self._out, size // stride, stride).flip(2)
        flat = taps.permute(3, 1, 0, 2).reshape(stride * self._out, channels, size // stride)
        self._conv = CausalConv(layout, flat, bias.repeat(stride), dtype)

    def __call__(self, rows: Tensor, past: Past) -> Tensor:
        return self._conv(rows, past).view(len(rows), -1, self._out)


class DepthwiseConv:
    """A causal convolution of each channel by itself: `weight` [channels, 1, taps]."""

    def __init__(self, layout: Layout, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> None:
        channels, _, taps = weight.shape
        self._place = layout.add(taps - 1, channels)
        self._weight = weight[:, 0].T.to(dtype).contiguous()
        self._bias = bias.to(dtype)

    def __call__(self, rows: Tensor, past: Past) -> Tensor:
        joined = past.extend(self._place, rows)
        total = self._bias
        for tap, weight in enumerate(self._weight):
            total = torch.addcmul(total, joined[:, tap : tap + rows.shape[1]], weight)
        return total


class Snake:
    """x + sin²(ax) / b for each channel (Ziyin et al. 2020, arXiv 2006.08195); the weights `alpha`
    and `beta` are the logarithms of a and b."""

    def __init__(self, module: Module, channels: int, dtype: torch.dtype) -> None:
        self._alpha = module.take("alpha", channels).exp().to(dtype)
        self._inverse_beta = (1 / (module.take("beta", channels).exp() + 1e-9)).to(dtype)

    def __call__(self, rows: Tensor) -> Tensor:
        wave = (rows * self._alpha).sin_().square_()
        return torch.addcmul(rows, wave, self._inverse_beta)
