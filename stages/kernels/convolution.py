"""Convolutions over time that the acoustic models share, and windows that trim their context.

A signal is a matrix [time, channels], one row per frame. On a CPU this layout takes 0.65 of the
time of the usual [channels, time], because it is an image of height 1 with its channels last.
A convolution of a window equals that of the whole signal if the window holds `reach` more rows on
each side. Beyond the ends of the signal these rows are zeros, as in the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.kernels.linear import lay_out, product
from stages.kernels.private_ops import (
    convolution_works,
    convolve,
    convolve_add,
    convolve_add_,
    laid_out_bytes,
    reorder_convolution,
)

if TYPE_CHECKING:
    from stages.weights.onnx import OnnxWeights

_BLOCK = 16  # rows
_SMALL_BLOCK = 8
_LARGE_WEIGHT = 2**18  # numbers
_FEW_ROWS = 128


@dataclass(frozen=True, slots=True)
class Parameters:
    """The weights of one model, for one device and one dtype. Makes its convolutions."""

    onnx: OnnxWeights
    device: torch.device
    dtype: torch.dtype

    def tensor(self, name: str) -> Tensor:
        """The parameter `name`. Raises KeyError if the model does not have it."""
        return torch.tensor(self.onnx.tensors[name], device=self.device, dtype=self.dtype)

    def optional(self, name: str) -> Tensor | None:
        """The parameter `name`, or None if the model does not have it."""
        return self.tensor(name) if name in self.onnx.tensors else None

    def has(self, module: str) -> bool:
        """Whether the model has this convolution."""
        return module in self.onnx.convolutions

    def count(self, pattern: str) -> int:
        """How many convolutions have the name `pattern` with 0, 1, 2, ... in place of its {}."""
        number = 0
        while self.has(pattern.format(number)):
            number += 1
        return number

    def convolution(self, module: str) -> tuple[Tensor, Tensor]:
        """Weight [out, in, size] and bias [out]; a missing bias is zeros."""
        weight = self.tensor(f"{module}.weight")
        bias = self.optional(f"{module}.bias")
        return weight, weight.new_zeros(len(weight)) if bias is None else bias

    def conv(self, module: str) -> Conv:
        """The convolution with the dilation that the file gives it, for long signals."""
        return Conv(*self.convolution(module), self.onnx.convolutions[module]["dilations"][0])

    def dense(self, module: str) -> Dense:
        """The convolution with the dilation that the file gives it, for short, wide signals."""
        dilation = self.onnx.convolutions[module]["dilations"][0]
        return Dense(*self.convolution(module), dilation)

    def optional_dense(self, module: str) -> Dense | None:
        """`dense`, or None if the model does not have this convolution."""
        return self.dense(module) if self.has(module) else None


class Dense(nn.Module):
    """A convolution [time, in] → [time, out] as one matrix product; it reads `reach` rows per side.

    For short, wide signals, such as those of text. oneDNN's convolution would lay out its weights
    in every call, which is half of the time there. Each new number of rows would cost 1 ms and 0.2
    MB. So the weights are laid out once, and rows are computed in blocks of 16. For large weights
    and at most 128 rows the block is 8 rows, because first audio waits for these.
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
        self._block, self._few_rows = _BLOCK, _FEW_ROWS  # TorchScript does not see module constants

    def forward(self, rows: Tensor) -> Tensor:
        """Convolve a whole signal: as many rows as it has, with zeros beyond both ends."""
        if self.reach:
            rows = functional.pad(rows, [0, 0, self.reach, self.reach])
        return self.valid(rows)

    def valid(self, rows: Tensor) -> Tensor:
        """Convolve without padding: the first and last `reach` rows are only context."""
        return self.valid_padded(rows)[: len(rows) - 2 * self.reach]

    def valid_padded(self, rows: Tensor) -> Tensor:
        """As `valid`, followed by rows of undefined content up to the end of a block."""
        num_rows = len(rows) - 2 * self.reach
        block = self._few_block if num_rows <= self._few_rows else self._block
        columns = _columns(rows, num_rows, self._size, self._dilation, block)
        return product(columns, self._weight, self._bias)


def padded_length(num_rows: int, block: int = _BLOCK) -> int:
    """`num_rows` rounded up to whole blocks: a `Dense` of size 1 takes these without a copy."""
    return -(-num_rows // block) * block


def _columns(rows: Tensor, num_rows: int, size: int, dilation: int, block: int) -> Tensor:
    """What each output of a convolution over `rows` reads: [num_rows, size * channels], followed by
    rows of zeros up to the end of a block."""
    if size == 1 and num_rows % block == 0:
        return rows
    channels, step = rows.shape[1], rows.stride(0)
    columns = rows.new_empty([padded_length(num_rows, block), size, channels])
    read = rows.as_strided([num_rows, size, channels], [step, step * dilation, 1])
    columns[:num_rows].copy_(read)
    columns[num_rows:].zero_()
    return columns.view(len(columns), size * channels)


class Depthwise(nn.Module):
    """A convolution of each channel of [time, channels] by itself; it reads `reach` rows per side.

    It takes a few products per value. The general forms would build a matrix for each length.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        weight = parameters.tensor(f"{module}.weight")
        self._taps = list(weight[:, 0].T.contiguous().unbind())
        self._bias = parameters.tensor(f"{module}.bias")
        self._dilation = parameters.onnx.convolutions[module]["dilations"][0]
        self.reach = (len(self._taps) - 1) // 2 * self._dilation

    def forward(self, rows: Tensor) -> Tensor:
        """Convolve without padding: the first and last `reach` rows are only context."""
        num_rows = len(rows) - 2 * self.reach
        out = torch.addcmul(self._bias, rows[:num_rows], self._taps[0])
        for number, tap in enumerate(self._taps[1:], 1):
            begin = number * self._dilation
            out.addcmul_(rows[begin : begin + num_rows], tap)
        return out


class Conv:
    """A convolution [time, in] → [time / stride, out] for long signals, without padding.

    The first and last `reach` rows are only context. Use few different lengths: on a CPU oneDNN
    generates half a megabyte of code for each, and for some it wants another layout of the weight.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dilation: int = 1, stride: int = 1) -> None:
        """`weight` is [out, in, size], `bias` [out]; computed in their dtype."""
        self.reach = (weight.shape[2] - stride) // 2 * dilation
        self._weight = weight.unsqueeze(2).contiguous(memory_format=torch.channels_last)
        self._bias = bias
        self._stride, self._dilation = (1, stride), (1, dilation)
        self._laid_out: dict[int, Tensor] | None = {} if _can_lay_out(weight) else None

    def __call__(
        self, rows: Tensor, plus: Tensor | None = None, *, in_place: bool = False
    ) -> Tensor:
        """The convolution of `rows`, plus `plus` if given. `in_place` allows overwriting `plus`."""
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
            weight = self._lay_out(num_rows, image.shape)
        how = (weight, self._bias, *shape)
        if plus is None:
            return _rows(convolve(image, *how, "none", [], ""))
        add = ("add", None, None, (), None)
        if in_place:
            convolve_add_(_image(plus), image, *how, *add)
            return plus
        return _rows(convolve_add(image, _image(plus), *how, *add))

    def _lay_out(self, num_rows: int, image_shape: torch.Size) -> Tensor:
        """The weight in the layout for `num_rows`; equal layouts share their memory."""
        assert self._laid_out is not None
        shape = ((0, 0), self._stride, self._dilation, 1)
        weight: Tensor = reorder_convolution(self._weight, *shape, image_shape)
        content = laid_out_bytes(weight)
        known = list(self._laid_out.values())
        same = (each for each in known if laid_out_bytes(each) == content)
        return self._laid_out.setdefault(num_rows, next(same, weight))


def _can_lay_out(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and convolution_works(weight.dtype)


def _image(rows: Tensor) -> Tensor:
    """Rows as an image [1, channels, 1, rows] with its channels last: a view."""
    num_rows, channels = rows.shape
    size = num_rows * channels
    return rows.as_strided((1, channels, 1, num_rows), (size, 1, size, channels))


def _rows(image: Tensor) -> Tensor:
    """The inverse of `_image`."""
    _, channels, _, num_rows = image.shape
    return image.as_strided((num_rows, channels), (channels, 1))


class Upsampling:
    """A transposed convolution [time, in] → [time * stride, out], as a convolution of the inputs.

    Each input has `stride` outputs. Without padding these are sums over the input and the
    size / stride - 1 inputs before it. `scale` multiplies the inputs.
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
        """The `stride` outputs of each row, without the first and last `cut` of them.

        `cut` has to cover all outputs that read rows beyond these.
        """
        out = self._conv(rows).view(-1, self.num_out)
        begin = cut + self._padding - (self._taps - 1) * self.stride
        return out[begin : begin + len(rows) * self.stride - 2 * cut]

    def reach(self, num_rows: int) -> int:
        """How many rows on each side of a window are read for `num_rows` more outputs per side."""
        left = (num_rows + self._taps * self.stride - 1 - self._padding) // self.stride
        right = (num_rows + self._padding - 1) // self.stride + 1
        return max(left, right)


@dataclass(slots=True)
class Window:
    """Rows of a longer signal: the window's own rows, and `context` more rows at each end.

    To keep its shape at an end of the signal, a window may hold rows from beyond it: its outermost
    `blank_left` and `blank_right` rows. They must be zero whenever they are read.
    """

    rows: Tensor
    context: int
    blank_left: int = 0
    blank_right: int = 0

    @property
    def num_own(self) -> int:
        """Rows that are not context."""
        return len(self.rows) - 2 * self.context

    def trimmed(self, cut: int) -> Window:
        """The window without `cut` rows at each end."""
        return self.with_rows(self.rows[cut:-cut] if cut else self.rows, cut)

    def with_rows(self, rows: Tensor, cut: int = 0) -> Window:
        """A window of `rows`: the values at this window's places without `cut` at each end."""
        left, right = max(0, self.blank_left - cut), max(0, self.blank_right - cut)
        return Window(rows, self.context - cut, left, right)

    def upsampled(self, stride: int, rows: Tensor, cut: int) -> Window:
        """A window of `rows`: `stride` values for each of this window's places, without the first
        and last `cut`."""
        left, right = self.blank_left * stride, self.blank_right * stride
        return Window(self.rows, self.context * stride, left, right).with_rows(rows, cut)

    def part(self, begin: int, end: int) -> Window:
        """The window of own rows `begin` to `end`, with the same context."""
        left, right = max(0, self.blank_left - begin), max(0, self.blank_right - self.num_own + end)
        return Window(self.rows[begin : end + 2 * self.context], self.context, left, right)

    def blanked(self, rows: Tensor) -> Window:
        """A window of `rows` at this window's places. Sets the rows beyond the signal's ends to
        zero, in place."""
        if self.blank_left:
            rows[: self.blank_left].zero_()
        if self.blank_right:
            rows[-self.blank_right :].zero_()
        return self.with_rows(rows)
