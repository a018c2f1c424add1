"""The stochastic duration predictor of VITS, in its direction of use: noise to log durations.

Couplings by a neural spline (Durkan et al. 2019, arXiv 1906.04032: monotonic, rational-quadratic,
identity outside of a bound), conditioned on the text. Shapes are [phonemes, channels].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.convolution import Depthwise
from stages.talker.encoder import Norm

if TYPE_CHECKING:
    from torch import Tensor

    from stages.convolution import Parameters

_BOUND = 5.0
_MIN_SIZE = 1e-3  # of a bin's width and height, and of a derivative


class _Convolutions:
    """Dilated and depth-separable convolutions, each added to what it reads (DDSConv)."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._layers = [
            (
                Depthwise(parameters, f"{module}.convs_sep.{layer}"),
                Norm(parameters, f"{module}.norms_1.{layer}"),
                parameters.dense(f"{module}.convs_1x1.{layer}"),
                Norm(parameters, f"{module}.norms_2.{layer}"),
            )
            for layer in range(parameters.count(f"{module}.convs_sep.{{}}"))
        ]

    def __call__(self, rows: Tensor) -> Tensor:
        for separate, norm_1, pointwise, norm_2 in self._layers:
            change = functional.gelu(norm_1(separate(rows)))
            rows = rows + functional.gelu(norm_2(pointwise(change)))
        return rows


class _SplineCoupling:
    """The first of two channels moves the second along a spline, inverse."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._pre = parameters.dense(f"{module}.pre")
        self._convs = _Convolutions(parameters, f"{module}.convs")
        self._proj = parameters.dense(f"{module}.proj")
        self._num_bins = (self._proj.out_channels + 1) // 3

    def __call__(self, rows: Tensor, text: Tensor) -> Tensor:
        kept, moved = rows[:, :1], rows[:, 1:]
        shape = self._proj(self._convs(self._pre(kept) + text))
        bins, scale = self._num_bins, math.sqrt(text.shape[1])
        moved = _inverse_spline(
            moved, shape[:, :bins] / scale, shape[:, bins : 2 * bins] / scale, shape[:, 2 * bins :]
        )
        return torch.cat([kept, moved], dim=1)


class DurationPredictor:
    """Hidden states [phonemes, channels] and noise [phonemes, 2] to log durations [phonemes], for
    one of several speakers by its embedding [1, channels]."""

    def __init__(self, parameters: Parameters) -> None:
        self._pre = parameters.dense("dp.pre")
        self._speaker = parameters.optional_dense("dp.cond")
        self._convs = _Convolutions(parameters, "dp.convs")
        self._proj = parameters.dense("dp.proj")
        # Odd flows are couplings, even ones swap the channels; VITS leaves out number 1 in this
        # direction.
        numbers = [n for n in range(64) if parameters.has(f"dp.flows.{n}.pre")]
        self._flows = [_SplineCoupling(parameters, f"dp.flows.{n}") for n in reversed(numbers)]
        self._shift = parameters.tensor("dp.flows.0.m")[:, 0]
        self._scale = _scale(parameters)[:, 0]

    def __call__(self, hidden: Tensor, noise: Tensor, voice: Tensor | None) -> Tensor:
        text = self._pre(hidden)
        if self._speaker and voice is not None:
            text = text + self._speaker(voice)
        text = self._proj(self._convs(text))
        for flow in self._flows:
            noise = flow(noise.flip(1), text)
        return ((noise.flip(1) - self._shift) * self._scale)[:, 0]


def _scale(parameters: Parameters) -> Tensor:
    """exp(-logs) of the first flow, of which exporters fold all, the sign only, or nothing."""
    if (scale := parameters.optional("dp.flows.0.scale")) is not None:
        return scale
    if (log_scale := parameters.optional("dp.flows.0.log_scale")) is not None:
        return log_scale.exp()
    return torch.exp(-parameters.tensor("dp.flows.0.logs"))


def _knots(sizes: Tensor) -> Tensor:
    """Bin sizes before softmax, [rows, bins], to the bins' borders, [rows, bins + 1]."""
    shares = _MIN_SIZE + (1 - _MIN_SIZE * sizes.shape[1]) * sizes.softmax(dim=1)
    borders = functional.pad(shares.cumsum(dim=1), (1, 0)) * (2 * _BOUND) - _BOUND
    borders[:, -1] = _BOUND
    return borders


def _inverse_spline(values: Tensor, widths: Tensor, heights: Tensor, slopes: Tensor) -> Tensor:
    """Where the spline of each row takes `values` [rows, 1]; outside of the bound, the same."""
    x, y = _knots(widths), _knots(heights)
    slopes = functional.pad(_MIN_SIZE + functional.softplus(slopes), (1, 1), value=1.0)
    inside = values.clamp(-_BOUND, _BOUND)
    at = ((inside >= y[:, :-1]).sum(dim=1, keepdim=True) - 1).clamp_min_(0)
    left, width = x.gather(1, at), x.diff(dim=1).gather(1, at)
    low, height = y.gather(1, at), y.diff(dim=1).gather(1, at)
    slope, next_slope = slopes.gather(1, at), slopes.gather(1, at + 1)
    delta = height / width
    above = inside - low
    bend = above * (slope + next_slope - 2 * delta)
    a = bend + height * (delta - slope)
    b = height * slope - bend
    c = -delta * above
    root = 2 * c / (-b - (b.square() - 4 * a * c).clamp_min_(0).sqrt())
    return torch.where(values.abs() <= _BOUND, root * width + left, values)
