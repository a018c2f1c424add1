"""The decoder of a Piper voice: HiFi-GAN (Kong et al. 2020, arXiv 2010.05646), as VITS uses it.

Sizes, strides and dilations follow from the voice's file, for both kinds of residual block.
A chunk is decoded with all the context that its samples read. Each upsampling trims the context, so
it costs little, and joined chunks equal the whole up to rounding. Chunks of one size have one shape
anywhere in the signal, because a new shape takes a CPU three times as long.
On a CPU the later stages run over short tiles of the chunk. Their rows stay in the core's cache,
and they have few shapes, each of which takes half a megabyte of generated code.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.convolution import Conv, Parameters, Upsampling, Window

if TYPE_CHECKING:
    from torch import Tensor

_SLOPE = 0.1
_LAST_SLOPE = 0.01
_POST_SAMPLES = 16  # that `conv_post` computes as one row
_TILE_FRAMES = 16  # a tile is a multiple of this
MAX_TILE_BYTES = 2**20  # of the signal in a tile


class _ResidualBlock:
    """A chain of steps x + convs(x), with one convolution a step, or two (high quality voices)."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._steps: list[list[Conv]] = []
        for kinds in (("convs",), ("convs1", "convs2")):
            for step in range(parameters.count(f"{module}.{kinds[0]}.{{}}")):
                names = [f"{module}.{kind}.{step}" for kind in kinds]
                self._steps.append([parameters.conv(name) for name in names])
        self.reach = sum(conv.reach for step in self._steps for conv in step)

    def __call__(self, window: Window, active: Window) -> Tensor:
        """The window without `reach` rows at each end. `active` is the window after the leaky ReLU,
        which all blocks share."""
        for number, (*first, last) in enumerate(self._steps):
            change = _active(window) if number else active
            for conv in first:
                change = _active(change.with_rows(conv(change.rows), conv.reach))
            window = window.trimmed((len(window.rows) - len(change.rows)) // 2 + last.reach)
            window.rows = last(change.rows, plus=window.rows, in_place=number > 0)
        return window.rows


def _active(window: Window, slope: float = _SLOPE) -> Window:
    """The window after a leaky ReLU."""
    return window.blanked(functional.leaky_relu(window.rows, slope))


class _Stage:
    """One upsampling and the sum of the residual blocks after it.

    HiFi-GAN takes the mean of the blocks. Here the weights that read the sum, after a leaky ReLU,
    are divided by the number of blocks instead.
    """

    def __init__(self, up: Upsampling, blocks: list[_ResidualBlock]) -> None:
        self.up = up
        self._blocks = blocks
        self._reach = max(block.reach for block in blocks)

    def __call__(self, window: Window, context: int) -> Window:
        """The window's own rows, upsampled, with `context` rows at each end."""
        cut = window.context * self.up.stride - context - self._reach
        window = window.upsampled(self.up.stride, self.up(_active(window).rows, cut), cut)
        active = _active(window)
        total = self._apply(self._blocks[0], window, active)
        for block in self._blocks[1:]:
            total.add_(self._apply(block, window, active))
        return window.with_rows(total, self._reach)

    def _apply(self, block: _ResidualBlock, window: Window, active: Window) -> Tensor:
        """Apply a block; all blocks give as many rows as the one with the largest reach."""
        cut = self._reach - block.reach
        return block(window.trimmed(cut), active.trimmed(cut))

    def reach(self, num_rows: int) -> int:
        """Rows of input read on each side of a window, for `num_rows` more outputs on each side."""
        return self.up.reach(num_rows + self._reach)


def _post(parameters: Parameters, scale: float) -> Conv:
    """`conv_post`, which makes one sample of each row, as a convolution that makes 16 at once.

    oneDNN always computes 16 outputs or more. To compute 16 samples is better than to waste 15
    outputs, although most of the weights are zero.
    """
    weight, bias = parameters.convolution("dec.conv_post")
    _, channels, size = weight.shape
    num_samples = math.gcd(_POST_SAMPLES, parameters.onnx.hop)
    band = weight.new_zeros(num_samples, channels, size + num_samples - 1)
    for number in range(num_samples):
        band[number, :, number : number + size] = weight[0] * scale
    return Conv(band, bias.repeat(num_samples), stride=num_samples)


class HifiGan:
    """Latent frames → `hop` samples each. `reach` frames of context per side make it exact."""

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
            up = Upsampling(parameters, f"dec.ups.{number}", 1 / per_stage if number else 1)
            self._stages.append(_Stage(up, stage))
        self._reaches = self._reach_of_each_stage()
        self.reach = self._reaches[0] + self._pre.reach
        self._tiles = self._tile_of_each_stage()

    def _reach_of_each_stage(self) -> list[int]:
        """Rows of context that the input of each stage needs, and last those of `conv_post`."""
        reaches = [self._post.reach]
        for stage in reversed(self._stages):
            reaches.insert(0, stage.reach(reaches[0]))
        return reaches

    def _tile_of_each_stage(self) -> list[int]:
        """Rows of input per tile, for each stage."""
        tiles, rows_per_frame = [], 1
        for stage in self._stages:
            rows = _TILE_FRAMES * rows_per_frame
            num_bytes = rows * stage.up.stride * stage.up.num_out * self._dtype.itemsize
            tiles.append(rows * max(1, MAX_TILE_BYTES // num_bytes))
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
        """The frames `begin` to `end` of `frames` [n, channels] → float32 samples
        [(end - begin) * hop] on the CPU.

        The signal is taken to begin and end with `frames`, so `frames` must have all context within
        `reach`. The computation has the shape of `size` frames (default: end - begin).
        """
        window = self._window(frames, begin, begin + (size or end - begin))
        rows = self._pre.valid(window.rows)
        if self._speaker is not None and self._speakers is not None:
            rows = rows + self._speaker(self._speakers[speaker : speaker + 1])
        window = window.with_rows(rows, self._pre.reach)
        samples = self._samples(window, end - begin, 0).float()
        return (
            samples.mul_(2).sigmoid_().mul_(2).sub_(1).cpu()
        )  # tanh, in a quarter of torch's time

    def _window(self, frames: Tensor, begin: int, end: int) -> Window:
        """Frames `begin` to `end` with `reach` more on both sides; zero where there are none."""
        blank_left = max(0, self.reach - begin)
        blank_right = max(0, end + self.reach - len(frames))
        given = frames[max(0, begin - self.reach) : end + self.reach]
        rows = functional.pad(given.to(self._device, self._dtype), (0, 0, blank_left, blank_right))
        return Window(rows, self.reach, blank_left, blank_right)

    def _samples(self, window: Window, num_rows: int, number: int) -> Tensor:
        """The samples, before tanh, of the first `num_rows` own rows of the input of a stage."""
        if number == len(self._stages):
            return self._post(_active(window, _LAST_SLOPE).rows).flatten()[:num_rows]
        stage, tile = self._stages[number], self._tiles[number]
        parts = []
        for begin in range(0, num_rows, tile):
            part = window.part(begin, min(begin + tile, window.num_own))
            num_out = min(num_rows - begin, tile) * stage.up.stride
            out = stage(part, self._reaches[number + 1])
            parts.append(self._samples(out, num_out, number + 1))
        return torch.cat(parts) if len(parts) > 1 else parts[0]
