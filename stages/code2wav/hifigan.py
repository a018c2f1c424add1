"""The decoder of a Piper voice: HiFi-GAN (Kong et al. 2020, arXiv 2010.05646), as VITS uses it.

Sizes, strides and dilations follow from the voice's file, for both kinds of residual block.
A chunk is decoded with as much context as reaches its samples, which is trimmed before each
upsampling, so that chunks joined equal the whole to rounding and cost little more. Chunks of one
size have one shape wherever they are in the signal: a new shape costs a CPU three times the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.convolution import Conv, Dense, Parameters, Up, Window

if TYPE_CHECKING:
    from torch import Tensor

_SLOPE = 0.1
_LAST_SLOPE = 0.01


class _ResidualBlock:
    """A chain of x + convs(x): one convolution in each step, or two (high quality voices)."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._steps: list[list[Conv]] = []
        for kinds in (("convs",), ("convs1", "convs2")):
            for step in range(parameters.count(f"{module}.{kinds[0]}.{{}}")):
                names = [f"{module}.{kind}.{step}" for kind in kinds]
                self._steps.append([Conv(parameters, name) for name in names])
        self.reach = sum(conv.reach for step in self._steps for conv in step)

    def __call__(self, window: Window, active: Tensor) -> Tensor:
        """`active`: the window's rows after the nonlinearity, which the blocks share."""
        rows = window.rows
        for number, step in enumerate(self._steps):
            change = _active(window, rows) if number else active
            for conv in step[:-1]:
                change = _active(window, conv(change))
            rows = step[-1](change, plus=rows)
        return rows


def _active(window: Window, rows: Tensor) -> Tensor:
    return window.blank(functional.leaky_relu(rows, _SLOPE))


class _Stage:
    """One upsampling and the sum of the residual blocks after it. Their mean would be next, but
    whatever reads it after a leaky ReLU can as well have smaller weights."""

    def __init__(self, up: Up, blocks: list[_ResidualBlock]) -> None:
        self.up = up
        self._blocks = blocks
        self._reach = max(block.reach for block in blocks)

    def __call__(self, window: Window) -> None:
        window.stretch(self.up(_active(window, window.rows)), self.up.stride)
        active = _active(window, window.rows)
        total = self._blocks[0](window, active)
        for block in self._blocks[1:]:
            total.add_(block(window, active))
        window.rows = total

    def reach(self, num_rows: int) -> int:
        """Rows of input beside those that become a window, for it and `num_rows` beside it."""
        return self.up.reach(num_rows + self._reach)


class HifiGan:
    """Latent frames to `hop` samples each; `reach` frames of context on each side are exact."""

    def __init__(self, parameters: Parameters) -> None:
        self._device, self._dtype = parameters.device, parameters.dtype
        self.hop = parameters.onnx.hop
        self._pre = Dense(parameters, "dec.conv_pre")
        self._speakers = parameters.optional("emb_g.weight")
        self._speaker = parameters.optional_dense("dec.cond")
        num_stages = parameters.count("dec.ups.{}")
        num_blocks = 1 + max(
            int(name.split(".")[2])
            for name in parameters.onnx.convolutions
            if name.startswith("dec.resblocks.")
        )
        per_stage = num_blocks // num_stages
        self._post = Conv(parameters, "dec.conv_post", 1 / per_stage)
        self._stages: list[_Stage] = []
        for number in range(num_stages):
            blocks = range(number * per_stage, (number + 1) * per_stage)
            names = [f"dec.resblocks.{block}" for block in blocks]
            stage = [_ResidualBlock(parameters, name) for name in names]
            up = Up(parameters, f"dec.ups.{number}", 1 / per_stage if number else 1)
            self._stages.append(_Stage(up, stage))
        self._reaches = self._reach_of_each_stage()
        self.reach = self._reaches[0] + self._pre.reach

    def _reach_of_each_stage(self) -> list[int]:
        """Rows of context that the input of each stage needs, and last that of `conv_post`."""
        reaches = [self._post.reach]
        for stage in reversed(self._stages):
            reaches.insert(0, stage.reach(reaches[0]))
        return reaches

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
        window.rows = self._pre(window.rows)
        if self._speaker is not None and self._speakers is not None:
            window.rows = window.rows + self._speaker(self._speakers[speaker : speaker + 1])
        for stage, reach in zip(self._stages, self._reaches, strict=False):
            window.trim(reach)
            stage(window)
        window.trim(self._reaches[-1])
        rows = window.blank(functional.leaky_relu(window.rows, _LAST_SLOPE))
        window.rows = self._post(rows)
        window.trim(0)
        return window.rows[: (end - begin) * self.hop, 0].float().tanh_().cpu()

    def _window(self, frames: Tensor, begin: int, end: int) -> Window:
        """Rows `begin` to `end` with `reach` on both sides, zero where there are no frames."""
        blank_left = max(0, self.reach - begin)
        blank_right = max(0, end + self.reach - len(frames))
        given = frames[max(0, begin - self.reach) : end + self.reach]
        rows = functional.pad(given.to(self._device, self._dtype), (0, 0, blank_left, blank_right))
        return Window(rows, self.reach, self.reach, blank_left, blank_right)
