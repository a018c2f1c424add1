"""The stochastic duration predictor of VITS, in its direction of use: noise to log durations.

Couplings by a neural spline (Durkan et al. 2019, arXiv 1906.04032: monotonic, rational-quadratic,
identity outside of a bound), conditioned on the text. Shapes are [phonemes, channels]. Nearly all
of its time is what an operation costs however little it computes, so there are few.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.convolution import Dense, Depthwise, whole_blocks
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
        self._reach = max(separate.reach for separate, *_ in self._layers)

    def __call__(self, rows: Tensor) -> Tensor:
        """The same number of rows, and zeros to the end of a block."""
        num_rows, reach = len(rows), self._reach
        end = reach + whole_blocks(num_rows)
        # The zeros around the rows, which every layer reads, stay what they are.
        state = functional.pad(rows, (0, 0, reach, end - num_rows))
        own = state[reach : reach + num_rows]
        for separate, norm_1, pointwise, norm_2 in self._layers:
            read = state[reach - separate.reach : end + separate.reach]
            change = functional.gelu(norm_1(separate.inner(read)))
            own += functional.gelu(norm_2(pointwise.blocks(change)))[:num_rows]
        return state[reach:end]


class _SplineCoupling:
    """One of two channels moves the other along a spline, inverse."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        weight, self._bias = parameters.convolution(f"{module}.pre")
        self._weight = weight[:, 0, 0]
        self._convs = _Convolutions(parameters, f"{module}.convs")
        self._splines = _Splines(parameters, f"{module}.proj")

    def __call__(self, moved: Tensor, kept: Tensor, text: Tensor) -> Tensor:
        """Where `moved` [phonemes] goes."""
        rows = torch.addcmul(text + self._bias, kept[:, None], self._weight)
        return self._splines(moved, self._convs(rows))


class _Splines:
    """The last layer of a coupling, which gives a spline for each row, and what those do."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        weight, bias = parameters.convolution(module)
        bins, scale = (len(weight) + 1) // 3, 1 / math.sqrt(weight.shape[1])
        # Three tables, each of a number for every border of a bin: shares of the width and of the
        # height before softmax, at first a share of nothing, and derivatives, at both ends 1.
        weights = weight.new_zeros(3, bins + 1, *weight.shape[1:])
        biases = bias.new_tensor([-math.inf, -math.inf, math.log(math.expm1(1 - _MIN_SIZE))])
        biases = biases[:, None].repeat(1, bins + 1)
        for tables, rows in ((weights, weight), (biases, bias)):
            tables[:2, 1:] = rows[: 2 * bins].view(2, bins, *rows.shape[1:]) * scale
            tables[2, 1:-1] = rows[2 * bins :]
        self._tables = Dense(weights.flatten(0, 1), biases.flatten())
        self._shape = 3, bins + 1
        self._sides = torch.arange(2, device=weight.device)[:, None]
        # Borders are the sums of bins that have a least size.
        even = torch.linspace(0, bins * _MIN_SIZE, bins + 1).to(bias)
        self._even = even[:, None] * (2 * _BOUND) - _BOUND
        self._rest = (1 - bins * _MIN_SIZE) * (2 * _BOUND)

    def __call__(self, values: Tensor, rows: Tensor) -> Tensor:
        """Where the splines of `rows` take `values` [rows]; outside of the bound, the same."""
        # [3, borders, rows]: a softmax over so few takes a fifth of the time where rows are last.
        tables = self._tables.blocks(rows)[: len(values)].T.view(*self._shape, -1)
        sums = tables[:2].softmax(dim=1).cumsum(dim=1)
        tables[:2] = borders = torch.add(self._even, sums, alpha=self._rest)
        inside = values.clamp(-_BOUND, _BOUND)
        place = (inside >= borders[1, 1:-1]).sum(dim=0)
        at = (place + self._sides).expand(3, -1, -1)
        (left, right), (low, high), slopes = tables.gather(1, at)
        # All in parts of the bin and of its mean slope.
        width, height = right - left, high - low
        share = (inside - low) / height
        slope, next_slope = (functional.softplus(slopes) + _MIN_SIZE) * (width / height)
        b = torch.addcmul(slope, slope + next_slope - 2, share, value=-1)
        root = torch.addcmul(b.square(), 1 - b, share, value=4).clamp_min_(0).sqrt_()
        moved = torch.addcmul(left, share / (b + root), width, value=2)
        return torch.where(inside == values, moved, values)


class DurationPredictor:
    """Hidden states [phonemes or some more, channels] and noise [phonemes, 2] to log durations
    [phonemes], for one of several speakers by its embedding [1, channels]."""

    def __init__(self, parameters: Parameters) -> None:
        self._pre = parameters.dense("dp.pre")
        self._speaker = parameters.optional_dense("dp.cond")
        self._convs = _Convolutions(parameters, "dp.convs")
        self._proj = parameters.dense("dp.proj")
        # Odd flows are couplings, even ones swap the channels; VITS leaves out number 1 in this
        # direction.
        numbers = [n for n in range(64) if parameters.has(f"dp.flows.{n}.pre")]
        self._flows = [_SplineCoupling(parameters, f"dp.flows.{n}") for n in reversed(numbers)]
        self._shift = parameters.tensor("dp.flows.0.m")[0]
        self._scale = _scale(parameters)[0]

    def __call__(self, hidden: Tensor, noise: Tensor, voice: Tensor | None) -> Tensor:
        text = self._pre.blocks(hidden)[: len(noise)]
        if self._speaker and voice is not None:
            text = text + self._speaker(voice)
        text = self._proj.blocks(self._convs(text))[: len(noise)]
        moved, kept = noise.unbind(dim=1)
        for flow in self._flows:
            moved, kept = kept, flow(moved, kept, text)
        return (kept - self._shift) * self._scale


def _scale(parameters: Parameters) -> Tensor:
    """exp(-logs) of the first flow, of which exporters fold all, the sign only, or nothing."""
    if (scale := parameters.optional("dp.flows.0.scale")) is not None:
        return scale
    if (log_scale := parameters.optional("dp.flows.0.log_scale")) is not None:
        return log_scale.exp()
    return torch.exp(-parameters.tensor("dp.flows.0.logs"))
