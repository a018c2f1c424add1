"""The stochastic duration predictor of VITS, in its direction of use: noise to log durations.

Its couplings are neural splines conditioned on the text (Durkan et al. 2019, arXiv 1906.04032:
monotonic, rational-quadratic, the identity outside of a bound). Shapes are [phonemes, channels].
Nearly all of its time is the fixed cost of each operation, so the code uses few operations.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.kernels.convolution import Dense, Depthwise, padded_length
from stages.models.piper.encoder import Norm

if TYPE_CHECKING:
    from stages.kernels.convolution import Parameters

_BOUND = 5.0
_MIN_SIZE = 1e-3  # of a bin's width and height, and of a derivative


class _Separable(nn.Module):
    """A dilated convolution of each channel, then a convolution of all channels at each phoneme."""

    def __init__(self, parameters: Parameters, module: str, layer: int) -> None:
        super().__init__()
        self._separate = Depthwise(parameters, f"{module}.convs_sep.{layer}")
        self._norm_1 = Norm(parameters, f"{module}.norms_1.{layer}")
        self._pointwise = parameters.dense(f"{module}.convs_1x1.{layer}")
        self._norm_2 = Norm(parameters, f"{module}.norms_2.{layer}")
        self.reach = self._separate.reach

    def forward(self, rows: Tensor) -> Tensor:
        """Convolve without padding: the first and last `reach` rows are only context."""
        change = functional.gelu(self._norm_1(self._separate(rows)))
        return functional.gelu(self._norm_2(self._pointwise.valid_padded(change)))


class _Convolutions(nn.Module):
    """Dilated and depth-separable convolutions, each added to its input (DDSConv in VITS)."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        numbers = range(parameters.count(f"{module}.convs_sep.{{}}"))
        layers = [_Separable(parameters, module, number) for number in numbers]
        self._reaches = [layer.reach for layer in layers]
        self._reach = max(self._reaches)
        self._layers = nn.ModuleList(layers)

    def forward(self, rows: Tensor) -> Tensor:
        """As many rows as the input, followed by rows up to the end of a block."""
        num_rows, reach = len(rows), self._reach
        end = reach + padded_length(num_rows)
        # Every layer reads the zeros around the rows; nothing overwrites them.
        state = functional.pad(rows, [0, 0, reach, end - num_rows])
        own = state[reach : reach + num_rows]
        for number, layer in enumerate(self._layers):
            context = self._reaches[number]
            own += layer(state[reach - context : end + context])[:num_rows]
        return state[reach:end]


class _SplineCoupling(nn.Module):
    """An inverse coupling: one of two channels moves the other along a spline."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        weight, self._bias = parameters.convolution(f"{module}.pre")
        self._weight = weight[:, 0, 0]
        self._convs = _Convolutions(parameters, f"{module}.convs")
        self._splines = _Splines(parameters, f"{module}.proj")

    def forward(self, moved: Tensor, kept: Tensor, text: Tensor) -> Tensor:
        """The new values of `moved` [phonemes]."""
        rows = torch.addcmul(text + self._bias, kept[:, None], self._weight)
        result: Tensor = self._splines(moved, self._convs(rows))
        return result


class _Splines(nn.Module):
    """The last layer of a coupling, which makes a spline for each row, and these splines."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        weight, bias = parameters.convolution(module)
        bins, scale = (len(weight) + 1) // 3, 1 / math.sqrt(weight.shape[1])
        # Three tables with a number for every border of a bin: shares of the width and of the
        # height before softmax (the first border has no share), and derivatives (1 at both ends).
        weights = weight.new_zeros(3, bins + 1, *weight.shape[1:])
        biases = bias.new_tensor([-math.inf, -math.inf, math.log(math.expm1(1 - _MIN_SIZE))])
        biases = biases[:, None].repeat(1, bins + 1)
        for tables, rows in ((weights, weight), (biases, bias)):
            tables[:2, 1:] = rows[: 2 * bins].view(2, bins, *rows.shape[1:]) * scale
            tables[2, 1:-1] = rows[2 * bins :]
        self._tables = Dense(weights.flatten(0, 1), biases.flatten())
        self._num_borders, self._bound, self._min_size = bins + 1, _BOUND, _MIN_SIZE
        self._sides = torch.arange(2, device=weight.device)[:, None]
        # A border is the sum of the bins before it, each of which has a minimum size.
        least = torch.linspace(0, bins * _MIN_SIZE, bins + 1).to(bias)
        self._least_borders = least[:, None] * (2 * _BOUND) - _BOUND
        self._shared_size = (1 - bins * _MIN_SIZE) * (2 * _BOUND)

    def forward(self, values: Tensor, rows: Tensor) -> Tensor:
        """The splines of `rows` applied to `values` [rows]; unchanged outside of the bound."""
        # [3, borders, rows]: with rows last, a softmax over so few borders takes a fifth of the
        # time.
        tables = self._tables.valid_padded(rows)[: len(values)].T.view(3, self._num_borders, -1)
        sums = tables[:2].softmax(dim=1).cumsum(dim=1)
        borders = torch.add(self._least_borders, sums, alpha=self._shared_size)
        tables[:2] = borders
        inside = values.clamp(-self._bound, self._bound)
        place = (inside >= borders[1, 1:-1]).sum(dim=0)
        at = (place + self._sides).expand(3, -1, -1)
        of_width, of_height, slopes = tables.gather(1, at).unbind()
        left, right = of_width.unbind()
        low, high = of_height.unbind()
        # From here on in parts of the bin's size and of its mean slope.
        width, height = right - left, high - low
        share = (inside - low) / height
        slopes = (functional.softplus(slopes) + self._min_size) * (width / height)
        slope, next_slope = slopes.unbind()
        b = torch.addcmul(slope, slope + next_slope - 2, share, value=-1)
        root = torch.addcmul(b.square(), 1 - b, share, value=4).clamp_min_(0).sqrt_()
        moved = torch.addcmul(left, share / (b + root), width, value=2)
        return torch.where(inside == values, moved, values)


class DurationPredictor(nn.Module):
    """Hidden states [at least phonemes, channels] and noise [phonemes, 2] → log durations
    [phonemes]. `voice` is the embedding [1, channels] of one of several speakers."""

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        self._pre = parameters.dense("dp.pre")
        self._speaker = parameters.optional_dense("dp.cond")
        self._convs = _Convolutions(parameters, "dp.convs")
        self._proj = parameters.dense("dp.proj")
        # Odd flows are couplings, even ones swap the channels. In this direction VITS leaves out
        # number 1.
        numbers = [n for n in range(64) if parameters.has(f"dp.flows.{n}.pre")]
        self._flows = nn.ModuleList(
            _SplineCoupling(parameters, f"dp.flows.{n}") for n in reversed(numbers)
        )
        self._shift = parameters.tensor("dp.flows.0.m")[0]
        self._scale = _scale(parameters)[0]

    def forward(self, hidden: Tensor, noise: Tensor, voice: Tensor | None) -> Tensor:
        text = self._pre.valid_padded(hidden)[: len(noise)]
        if self._speaker is not None and voice is not None:
            text = text + self._speaker(voice)
        text = self._proj.valid_padded(self._convs(text))[: len(noise)]
        moved, kept = noise.unbind(dim=1)
        for flow in self._flows:
            moved, kept = kept, flow(moved, kept, text)
        return (kept - self._shift) * self._scale


def _scale(parameters: Parameters) -> Tensor:
    """exp(-logs) of the first flow. Exporters fold all of it, only the sign, or nothing."""
    if (scale := parameters.optional("dp.flows.0.scale")) is not None:
        return scale
    if (log_scale := parameters.optional("dp.flows.0.log_scale")) is not None:
        return log_scale.exp()
    return torch.exp(-parameters.tensor("dp.flows.0.logs"))
