"""The decoder of a Piper voice: HiFi-GAN (Kong et al. 2020, arXiv 2010.05646), as VITS uses it.

Sizes, strides and dilations follow from the voice's file, for both kinds of residual block.
A chunk is decoded with as much context as reaches its samples, which is trimmed before each
upsampling, so that chunks joined equal the whole to rounding and cost little more. Chunks of one
size have one shape wherever they are in the signal: a new shape costs a CPU three times the time.
On a CPU the later stages run over short tiles of the chunk, whose rows stay in the core's cache and
whose shapes are few: each takes half a megabyte of code.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.convolution import Conv, Parameters, Up, Window

if TYPE_CHECKING:
    from torch import Tensor

_SLOPE = 0.1
_LAST_SLOPE = 0.01
_AT_ONCE = 16  # samples
_TILE_FRAMES = 16  # a tile is a multiple of it
_TILE_BYTES = 2**20  # of a signal in a tile, or less


class _ResidualBlock:
    """A chain of x + convs(x): one convolution in each step, or two (high quality voices)."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._steps: list[list[Conv]] = []
        for kinds in (("convs",), ("convs1", "convs2")):
            for step in range(parameters.count(f"{module}.{kinds[0]}.{{}}")):
                names = [f"{module}.{kind}.{step}" for kind in kinds]
                self._steps.append([parameters.conv(name) for name in names])
        self.reach = sum(conv.reach for step in self._steps for conv in step)

    def __call__(self, window: Window, active: Window) -> Tensor:
        """The rows within its reach. `active`: the window after the nonlinearity, which the blocks
        share."""
        for number, (*first, last) in enumerate(self._steps):
            change = _active(window) if number else active
            for conv in first:
                change = _active(change.less(conv.reach, conv(change.rows)))
            window = window.inner((len(window.rows) - len(change.rows)) // 2 + last.reach)
            window.rows = last(change.rows, plus=window.rows, in_place=number > 0)
        return window.rows


def _active(window: Window, slope: float = _SLOPE) -> Window:
    return window.blank(functional.leaky_relu(window.rows, slope))


class _Stage:
    """One upsampling and the sum of the residual blocks after it. Their mean would be next, but
    whatever reads it after a leaky ReLU can as well have smaller weights."""

    def __init__(self, up: Up, blocks: list[_ResidualBlock]) -> None:
        self.up = up
        self._blocks = blocks
        self._reach = max(block.reach for block in blocks)

    def __call__(self, window: Window, context: int) -> Window:
        """The window's own rows, upsampled, with `context` rows at each end."""
        cut = window.context * self.up.stride - context - self._reach
        window = window.stretched(self.up.stride, cut, self.up(_active(window).rows, cut))
        active = _active(window)
        total = self._within(self._blocks[0], window, active)
        for block in self._blocks[1:]:
            total.add_(self._within(block, window, active))
        return window.less(self._reach, total)

    def _within(self, block: _ResidualBlock, window: Window, active: Window) -> Tensor:
        """What a block makes of a window, within the reach of the widest."""
        cut = self._reach - block.reach
        return block(window.inner(cut), active.inner(cut))

    def reach(self, num_rows: int) -> int:
        """Rows of input beside those that become a window, for it and `num_rows` beside it."""
        return self.up.reach(num_rows + self._reach)


def _post(parameters: Parameters, scale: float) -> Conv:
    """`conv_post`, rows to one sample each, as one that gives `_AT_ONCE` of them: oneDNN computes
    16 outputs or more. Better those of 16 samples, though most of the weights are zero then."""
    weight, bias = parameters.convolution("dec.conv_post")
    _, channels, size = weight.shape
    at_once = math.gcd(_AT_ONCE, parameters.onnx.hop)
    band = weight.new_zeros(at_once, channels, size + at_once - 1)
    for number in range(at_once):
        band[number, :, number : number + size] = weight[0] * scale
    return Conv(band, bias.repeat(at_once), stride=at_once)


class HifiGan:
    """Latent frames to `hop` samples each; `reach` frames of context on each side are exact."""

    def __init__(self, parameters: Parameters) -> None:
        self._device, self._dtype = parameters.device, parameters.dtype
        self.hop = parameters.onnx.hop
        self._pre = parameters.dense("dec.conv_pre")
        self._speakers = parameters.optional("emb_g.weight")
        self._speaker = parameters.optional_dense("dec.cond")
        num_stages = parameters.count("dec.ups.{}")
        num_blocks = 1 + max(
            int(name.split(".")[2])
            for name in parameters.onnx.convolutions
            if name.startswith("dec.resblocks.")
        )
        per_stage = num_blocks // num_stages
        self._post = _post(parameters, 1 / per_stage)
        self._stages: list[_Stage] = []
        for number in range(num_stages):
            blocks = range(number * per_stage, (number + 1) * per_stage)
            names = [f"dec.resblocks.{block}" for block in blocks]
            stage = [_ResidualBlock(parameters, name) for name in names]
            up = Up(parameters, f"dec.ups.{number}", 1 / per_stage if number else 1)
            self._stages.append(_Stage(up, stage))
        self._reaches = self._reach_of_each_stage()
        self.reach = self._reaches[0] + self._pre.reach
        self._tiles = self._tile_of_each_stage()

    def _reach_of_each_stage(self) -> list[int]:
        """Rows of context that the input of each stage needs, and last that of `conv_post`."""
        reaches = [self._post.reach]
        for stage in reversed(self._stages):
            reaches.insert(0, stage.reach(reaches[0]))
        return reaches

    def _tile_of_each_stage(self) -> list[int]:
        """Rows of input that each stage takes at once."""
        tiles, rows_per_frame = [], 1
        for stage in self._stages:
            rows = _TILE_FRAMES * rows_per_frame
            num_bytes = rows * stage.up.stride * stage.up.num_out * self._dtype.itemsize
            tiles.append(rows * max(1, _TILE_BYTES // num_bytes))
            rows_per_frame *= stage.up.stride
        return tiles if self._device.type == "cpu" else [sys.maxsize] * len(tiles)

    @property
    def channels(self) -> int:
        """Channels of a latent frame."""
        return self._pre.in_channels

    @torch.inference_mode()
    def decode(
        self, frames: Tensor, begin: int, end: int, size: int | None = None, speaker: int = 0
    ) -> Tensor:
        """Float32 samples [(end - begin) * hop], on the CPU, of these of `frames` [n, channels].

        The signal is taken to end with `frames`, so all within `reach` of it have to be there.
        The computation has the shape of `size` frames (default: as many as there are).
        """
        window = self._window(frames, begin, begin + (size or end - begin))
        rows = self._pre.inner(window.rows)
        if self._speaker is not None and self._speakers is not None:
            rows = rows + self._speaker(self._speakers[speaker : speaker + 1])
        window = window.less(self._pre.reach, rows)
        samples = self._sound(window, end - begin, 0).float()
        return samples.mul_(2).sigmoid_().mul_(2).sub_(1).cpu()  # tanh, in a fourth of its time

    def _window(self, frames: Tensor, begin: int, end: int) -> Window:
        """Rows `begin` to `end` with `reach` on both sides, zero where there are no frames."""
        blank_left = max(0, self.reach - begin)
        blank_right = max(0, end + self.reach - len(frames))
        given = frames[max(0, begin - self.reach) : end + self.reach]
        rows = functional.pad(given.to(self._device, self._dtype), (0, 0, blank_left, blank_right))
        return Window(rows, self.reach, blank_left, blank_right)

    def _sound(self, window: Window, num_rows: int, number: int) -> Tensor:
        """The samples of the window's first own rows, which stage `number` reads, before tanh."""
        if number == len(self._stages):
            return self._post(_active(window, _LAST_SLOPE).rows).flatten()[:num_rows]
        stage, tile = self._stages[number], self._tiles[number]
        parts = []
        for begin in range(0, num_rows, tile):
            part = window.part(begin, min(begin + tile, window.num_own))
            wanted = min(num_rows - begin, tile) * stage.up.stride
            parts.append(self._sound(stage(part, self._reaches[number + 1]), wanted, number + 1))
        return torch.cat(parts) if len(parts) > 1 else parts[0]
