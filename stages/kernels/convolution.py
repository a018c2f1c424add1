"""Convolutions over time that the acoustic models share, and the trimming of their context.

A signal is a matrix [time, channels], one row per frame. On a CPU that layout, seen as an image
of height 1 with its channels last, takes 0.65 of the time of the usual [channels, time].
A window of a longer signal gives exact rows where it holds `reach` more rows on each side, or
where it ends as the signal does: beyond both ends there are zeros, as in the whole.
"""

from __future__ import annotations

from ctypes import string_at
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.kernels.linear import can_lay_out, lay_out, product

if TYPE_CHECKING:
    from stages.weights.onnx import OnnxWeights

_BLOCK = 16
_SMALL_BLOCK = 8
_LARGE_WEIGHT = 2**18
_FEW_ROWS = 128


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

    def convolution(self, module: str) -> tuple[Tensor, Tensor]:
        """Weight [out, in, size] and bias [out] of a convolution."""
        weight = self.tensor(f"{module}.weight")
        bias = self.optional(f"{module}.bias")
        return weight, weight.new_zeros(len(weight)) if bias is None else bias

    def conv(self, module: str) -> Conv:
        """The convolution of this name, its dilation from the file, for long signals."""
        return Conv(*self.convolution(module), self.onnx.convolutions[module]["dilations"][0])

    def dense(self, module: str) -> Dense:
        """The convolution of this name, its dilation from the file."""
        dilation = self.onnx.convolutions[module]["dilations"][0]
        return Dense(*self.convolution(module), dilation)

    def optional_dense(self, module: str) -> Dense | None:
        """The convolution of this name, or None if the voice has none."""
        return self.dense(module) if self.has(module) else None


class Dense(nn.Module):
    """[time, in] to [time, out] as one matrix product; `reach` rows to each side are read.

    For the short, wide signals of the text side. oneDNN's convolution lays out its weights anew in
    every call, which is half of the time there, and a number of rows that it has not seen costs a
    millisecond and 0.2 MB: so the weights are laid out once, and rows are computed in blocks of 16.
    Up to 128 rows of a large weight, in blocks of 8: those are what first audio waits for.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dilation: int = 1) -> None:
        """`weight` is [out, in, size], `bias` [out]; computed in their dtype."""
        super().__init__()
        _, self.in_channels, self._size = weight.shape
        self._dilation = dilation
        self.reach = (self._size - 1) // 2 * dilation
        columns = weight.transpose(1, 2).reshape(len(weight), -1).contiguous()
        self._weight, self._bias = lay_out(columns), bias
        self._few_block = _SMALL_BLOCK if weight.numel() >= _LARGE_WEIGHT else _BLOCK
        self._block, self._few_rows = _BLOCK, _FEW_ROWS  # a constant is not seen from TorchScript

    def forward(self, rows: Tensor) -> Tensor:
        """The same number of rows; there are zeros beyond both ends."""
        if self.reach:
            rows = functional.pad(rows, [0, 0, self.reach, self.reach])
        return self.inner(rows)

    def inner(self, rows: Tensor) -> Tensor:
        """Of rows of which the first and last `reach` are context, those between."""
        return self.blocks(rows)[: len(rows) - 2 * self.reach]

    def blocks(self, rows: Tensor) -> Tensor:
        """The same, and after them rows without a meaning, to the end of a block."""
        num_rows = len(rows) - 2 * self.reach
        block = self._few_block if num_rows <= self._few_rows else self._block
        columns = _columns(rows, num_rows, self._size, self._dilation, block)
        return product(columns, self._weight, self._bias)


def whole_blocks(num_rows: int, block: int = _BLOCK) -> int:
    """This many rows or a few more: as many as go through any `Dense` of size 1 as they are."""
    return -(-num_rows // block) * block


def _columns(rows: Tensor, num_rows: int, size: int, dilation: int, block: int) -> Tensor:
    """[num_rows, size * channels], and rows of zeros to the end of a block: what each output of a
    convolution over `rows` reads."""
    if size == 1 and num_rows % block == 0:
        return rows
    channels, step = rows.shape[1], rows.stride(0)
    columns = rows.new_empty([whole_blocks(num_rows, block), size, channels])
    read = rows.as_strided([num_rows, size, channels], [step, step * dilation, 1])
    columns[:num_rows].copy_(read)
    columns[num_rows:].zero_()
    return columns.view(len(columns), size * channels)


class Depthwise(nn.Module):
    """Each channel of [time, channels] convolved by itself; `reach` rows to each side are read.

    A few products per value, which the general forms would lay out a matrix for, and that anew for
    each length.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        weight = parameters.tensor(f"{module}.weight")
        self._taps = list(weight[:, 0].T.contiguous().unbind())
        self._bias = parameters.tensor(f"{module}.bias")
        self._dilation = parameters.onnx.convolutions[module]["dilations"][0]
        self.reach = (len(self._taps) - 1) // 2 * self._dilation

    def forward(self, rows: Tensor) -> Tensor:
        """Of rows of which the first and last `reach` are context, those between."""
        num_rows = len(rows) - 2 * self.reach
        out = torch.addcmul(self._bias, rows[:num_rows], self._taps[0])
        for number, tap in enumerate(self._taps[1:], 1):
            begin = number * self._dilation
            out.addcmul_(rows[begin : begin + num_rows], tap)
        return out


class Conv:
    """[time, in] to [time / stride, out], for long signals; `reach` rows at each end are only read.

    On a CPU oneDNN wants the weight in a layout that depends on the length of the signal, if only
    for some lengths, and half a megabyte of code for each length, so those had better be few.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dilation: int = 1, stride: int = 1) -> None:
        """`weight` is [out, in, size], `bias` [out]; computed in their dtype."""
        self.reach = (weight.shape[2] - stride) // 2 * dilation
        self._weight = weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        self._bias = bias
        self._stride, self._dilation = (1, stride), (1, dilation)
        self._laid_out: dict[int, Tensor] | None = {} if can_lay_out(weight) else None

    def __call__(
        self, rows: Tensor, plus: Tensor | None = None, *, in_place: bool = False
    ) -> Tensor:
        """The convolution of `rows`, and `plus` added to it where it is given, which may be lost if
        it is to be `in_place`."""
        if self._laid_out is None:
            image = rows.view(1, 1, *rows.shape).permute(0, 3, 1, 2)
            image = functional.conv2d(
                image, self._weight, self._bias, self._stride, dilation=self._dilation
            )
            out = image.permute(0, 2, 3, 1)[0, 0]
            return out if plus is None else out.add_(plus)
        image, shape = _image(rows), ((0, 0), self._stride, self._dilation, 1)
        num_rows = image.shape[3]
        weight = self._laid_out.get(num_rows)
        if weight is None:
            weight = torch.ops.mkldnn._reorder_convolution_weight(self._weight, *shape, image.shape)
            same = (
                known for known in list(self._laid_out.values()) if _bytes(known) == _bytes(weight)
            )
            weight = self._laid_out[num_rows] = next(same, weight)
        ops, how = torch.ops.mkldnn, (weight, self._bias, *shape)
        if plus is None:
            return _rows(ops._convolution_pointwise.default(image, *how, "none", [], ""))
        add = ("add", None, None, (), None)
        if in_place:
            ops._convolution_pointwise_.binary(_image(plus), image, *how, *add)
            return plus
        return _rows(ops._convolution_pointwise.binary(image, _image(plus), *how, *add))


def _bytes(laid_out: Tensor) -> bytes:
    address, num_bytes = torch.ops.mkldnn.data_ptr(laid_out), torch.ops.mkldnn._nbytes(laid_out)
    return string_at(address, num_bytes)


def _image(rows: Tensor) -> Tensor:
    num_rows, channels = rows.shape
    size = num_rows * channels
    return rows.as_strided((1, channels, 1, num_rows), (size, 1, size, channels))


def _rows(image: Tensor) -> Tensor:
    _, channels, _, num_rows = image.shape
    return image.as_strided((num_rows, channels), (channels, 1))


class Up:
    """[time, in] to [time * stride, out]: a transposed convolution, as one over the inputs.

    Without its padding, the `stride` outputs at an input are sums over it and the size / stride - 1
    inputs before. `scale` multiplies what is read.
    """

    def __init__(self, parameters: Parameters, module: str, scale: float) -> None:
        weight = parameters.tensor(f"{module}.weight") * scale
        shape = parameters.onnx.convolutions[module]
        self.stride = shape["strides"][0]
        self._padding = shape["pads"][0]
        num_in, self.num_out, size = weight.shape
        self._taps = -(-size // self.stride)
        weight = functional.pad(weight, (0, self._taps * self.stride - size))
        weight = weight.view(num_in, self.num_out, self._taps, self.stride).flip(2)
        weight = weight.permute(3, 1, 0, 2).reshape(self.stride * self.num_out, num_in, -1)
        bias = parameters.tensor(f"{module}.bias")
        self._conv = Conv(weight, bias.repeat(self.stride))

    def __call__(self, rows: Tensor, cut: int) -> Tensor:
        """The `stride` outputs for each row, without the first and last `cut`, which have to be as
        many as read what is not there."""
        out = self._conv(rows).view(-1, self.num_out)
        begin = cut + self._padding - (self._taps - 1) * self.stride
        return out[begin : begin + len(rows) * self.stride - 2 * cut]

    def reach(self, num_rows: int) -> int:
        """How many rows beside a window are read for its outputs and `num_rows` more on a side."""
        left = (num_rows + self._taps * self.stride - 1 - self._padding) // self.stride
        right = (num_rows + self._padding - 1) // self.stride + 1
        return max(left, right)


@dataclass(slots=True)
class Window:
    """Rows of a longer signal, of which the first and the last `context` are not its own.

    To keep its shape where the signal ends, a window may hold rows from beyond: the outermost
    `blank_left` and `blank_right`. They have to be zero whenever they are read.
    """

    rows: Tensor
    context: int
    blank_left: int = 0
    blank_right: int = 0

    @property
    def num_own(self) -> int:
        """Rows that are not context."""
        return len(self.rows) - 2 * self.context

    def inner(self, cut: int) -> Window:
        """The window without `cut` rows at each end."""
        return self.less(cut, self.rows[cut:-cut] if cut else self.rows)

    def less(self, cut: int, rows: Tensor) -> Window:
        """A window of `rows`, which stand where this one's do without `cut` at each end."""
        left, right = max(0, self.blank_left - cut), max(0, self.blank_right - cut)
        return Window(rows, self.context - cut, left, right)

    def stretched(self, stride: int, cut: int, rows: Tensor) -> Window:
        """A window of `rows`, of which `stride` stand where each one of this does, without the
        first and last `cut`."""
        left, right = self.blank_left * stride, self.blank_right * stride
        return Window(self.rows, self.context * stride, left, right).less(cut, rows)

    def part(self, begin: int, end: int) -> Window:
        """The window of own rows `begin` to `end`, with as much context."""
        left, right = max(0, self.blank_left - begin), max(0, self.blank_right - self.num_own + end)
        return Window(self.rows[begin : end + 2 * self.context], self.context, left, right)

    def blank(self, rows: Tensor) -> Window:
        """A window of `rows`, which stand where this one's do, made zero beyond the signal's ends:
        in place."""
        if self.blank_left:
            rows[: self.blank_left].zero_()
        if self.blank_right:
            rows[-self.blank_right :].zero_()
        return self.less(0, rows)
