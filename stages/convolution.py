"""Convolutions over time that the acoustic models share, and the trimming of their context.

A signal is a matrix [time, channels], one row per frame. On a CPU that layout, seen as an image
of height 1 with its channels last, takes 0.65 of the time of the usual [channels, time].
A window of a longer signal gives exact rows where it holds `reach` more rows on each side, or
where it ends as the signal does: beyond both ends there are zeros, as in the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from stages.talker.onnx_weights import OnnxWeights


@dataclass(frozen=True, slots=True)
class Parameters:
    """Weights of one model, on one device, in one dtype; convolutions are made from them."""

    onnx: OnnxWeights
    device: torch.device
    dtype: torch.dtype

    def tensor(self, name: str) -> Tensor:
        """The parameter `name`; KeyError if the voice has none."""
        return torch.tensor(self.onnx.tensors[name], device=self.device, dtype=self.dtype)

    def optional(self, name: str) -> Tensor | None:
        """The parameter `name`, or None if the voice has none."""
        return self.tensor(name) if name in self.onnx.tensors else None

    def has(self, module: str) -> bool:
        """Whether the voice has this convolution."""
        return module in self.onnx.convolutions

    def count(self, pattern: str) -> int:
        """How many convolutions there are with a name like `pattern`, its {} counting from 0."""
        number = 0
        while self.has(pattern.format(number)):
            number += 1
        return number

    def conv(self, module: str) -> Conv:
        """The convolution of this name, its dilation from the file."""
        return Conv(self, module)

    def optional_conv(self, module: str) -> Conv | None:
        """The convolution of this name, or None if the voice has none."""
        return Conv(self, module) if self.has(module) else None

    def up(self, module: str) -> Up:
        """The transposed convolution of this name, its stride and padding from the file."""
        return Up(self, module)


def _image(rows: Tensor) -> Tensor:
    return rows.view(1, 1, *rows.shape).permute(0, 3, 1, 2)


def _rows(image: Tensor) -> Tensor:
    return image.permute(0, 2, 3, 1)[0, 0]


def _kernel(weight: Tensor) -> Tensor:
    return weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)


class Conv:
    """[time, in] to [time, out]; `reach` rows to each side are read."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        weight = parameters.tensor(f"{module}.weight")
        bias = f"{module}.bias"
        self._bias = parameters.tensor(bias) if bias in parameters.onnx.tensors else None
        shape = parameters.onnx.convolutions[module]
        self._dilation = shape["dilations"][0]
        self.in_channels, size = weight.shape[1:]
        self.out_channels = weight.shape[0]
        self.reach = (size - 1) // 2 * self._dilation
        self._weight = weight[:, :, 0] if size == 1 else _kernel(weight)
        self._pointwise = size == 1

    def __call__(self, rows: Tensor) -> Tensor:
        if self._pointwise and rows.shape[1] == self.in_channels:
            return functional.linear(rows, self._weight, self._bias)
        image = functional.conv2d(
            _image(rows),
            self._weight,
            self._bias,
            padding=(0, self.reach),
            dilation=(1, self._dilation),
            groups=rows.shape[1] // self.in_channels,
        )
        return _rows(image)


class Up:
    """[time, in] to [time * stride, out]."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        weight = parameters.tensor(f"{module}.weight")
        shape = parameters.onnx.convolutions[module]
        self.stride = shape["strides"][0]
        self._padding = shape["pads"][0]
        self._size = weight.shape[2]
        self._weight = _kernel(weight)
        self._bias = parameters.tensor(f"{module}.bias")

    def __call__(self, rows: Tensor) -> Tensor:
        image = functional.conv_transpose2d(
            _image(rows),
            self._weight,
            self._bias,
            stride=(1, self.stride),
            padding=(0, self._padding),
        )
        return _rows(image)

    def reach(self, num_rows: int) -> int:
        """How many rows beside a window are read for its outputs and `num_rows` more on a side."""
        left = (num_rows + self._size - 1 - self._padding) // self.stride
        right = (num_rows + self._padding - 1) // self.stride + 1
        return max(left, right)


@dataclass(slots=True)
class Window:
    """Rows of a longer signal, of which the first `left` and the last `right` are context.

    To keep its shape where the signal ends, a window may hold rows from beyond: the outermost
    `blank_left` and `blank_right` of its context. They have to be zero whenever they are read.
    """

    rows: Tensor
    left: int
    right: int
    blank_left: int = 0
    blank_right: int = 0

    def trim(self, reach: int) -> None:
        """Drop the context beyond `reach` rows; where there is less it stays."""
        left, right = max(0, self.left - reach), max(0, self.right - reach)
        self.rows = self.rows[left : len(self.rows) - right]
        self.left, self.blank_left = self.left - left, max(0, self.blank_left - left)
        self.right, self.blank_right = self.right - right, max(0, self.blank_right - right)

    def stretch(self, rows: Tensor, stride: int) -> None:
        """Go on with `rows`, which have `stride` rows for each one of before."""
        self.rows = rows
        self.left, self.blank_left = self.left * stride, self.blank_left * stride
        self.right, self.blank_right = self.right * stride, self.blank_right * stride

    def blank(self, rows: Tensor) -> Tensor:
        """Rows that stand where the window's do, made zero in place beyond the signal's ends."""
        if self.blank_left:
            rows[: self.blank_left].zero_()
        if self.blank_right:
            rows[-self.blank_right :].zero_()
        return rows
