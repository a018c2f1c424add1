"""Computes a speaker embedding from a recording: a mel spectrogram and an ECAPA-TDNN over it.

See Desplanques et al. 2020, "ECAPA-TDNN". The mel scale is Slaney's, normalized by area. It runs
once for each voice, in float32, in short parts, so that the stage can make frames for other
requests in between.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.contract.messages import OUTPUT_RATE_HZ
from stages.weights.safetensors import Part

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from torch import Tensor

    from stages.models.qwen3_tts.talker.model_config import SpeakerEncoderSizes

WINDOW = 1024
HOP = 256
MAX_HZ = 12_000
_FLOOR = 1e-5
_PREFIX = "speaker_encoder."


def mel_spectrogram(samples: Tensor, filters: Tensor) -> Tensor:
    """Samples [n] at 24 kHz, n > 384 → log mel spectrogram [bins, frames] by `mel_filters`."""
    padding = (WINDOW - HOP) // 2
    padded = functional.pad(samples[None], (padding, padding), mode="reflect")
    window = torch.hann_window(WINDOW, device=samples.device)
    spectrum = torch.stft(padded, WINDOW, HOP, WINDOW, window, center=False, return_complex=True)[0]
    magnitude = (spectrum.real**2 + spectrum.imag**2 + 1e-9).sqrt()
    return (filters @ magnitude).clamp(min=_FLOOR).log()


def mel_filters(num_bins: int) -> Tensor:
    """Mel filters [bins, WINDOW / 2 + 1], from 0 to 12 kHz."""
    edges = _hz(torch.linspace(0.0, _mel(MAX_HZ), num_bins + 2, dtype=torch.float64))
    bins = torch.linspace(0.0, OUTPUT_RATE_HZ / 2, WINDOW // 2 + 1, dtype=torch.float64)
    widths = edges.diff()
    ramps = edges[:, None] - bins
    rising = -ramps[:-2] / widths[:-1, None]
    falling = ramps[2:] / widths[1:, None]
    filters = torch.minimum(rising, falling).clamp(min=0.0)
    return (filters * (2.0 / (edges[2:] - edges[:-2]))[:, None]).float()


# Slaney's scale: linear up to 1 kHz, logarithmic above.
_LINEAR_HZ = 200.0 / 3
_KNEE_HZ = 1000.0
_KNEE = _KNEE_HZ / _LINEAR_HZ
_LOG_STEP = math.log(6.4) / 27


def _mel(hz: float) -> float:
    return _KNEE + math.log(hz / _KNEE_HZ) / _LOG_STEP if hz >= _KNEE_HZ else hz / _LINEAR_HZ


def _hz(mels: Tensor) -> Tensor:
    return torch.where(
        mels >= _KNEE, _KNEE_HZ * (_LOG_STEP * (mels - _KNEE)).exp(), mels * _LINEAR_HZ
    )


class SpeakerEncoder:
    """The network. Its weights are those whose names begin with `speaker_encoder.`."""

    def __init__(
        self, sizes: SpeakerEncoderSizes, weights: Mapping[str, Tensor], device: torch.device
    ) -> None:
        """Open the weights. Raises CheckpointError if the checkpoint has no speaker encoder."""
        self._sizes = sizes
        self._weights = Part(weights, _PREFIX, device)
        self._weights["fc.weight"]  # raises if it is missing
        self._filters = mel_filters(sizes.mel_bins).to(device)

    def __call__(self, samples: Tensor) -> Generator[None, None, Tensor]:
        """Samples [n] at 24 kHz, on the device → speaker embedding [size]. Yields between parts."""
        x = mel_spectrogram(samples, self._filters)
        x = self._tdnn("blocks.0", x, self._sizes.dilations[0])
        blocks = []
        for i in range(1, len(self._sizes.channels) - 1):
            yield
            x = self._block(f"blocks.{i}", x, self._sizes.dilations[i])
            blocks.append(x)
        yield
        x = self._tdnn("mfa", torch.cat(blocks), self._sizes.dilations[-1])
        yield
        pooled = self._pool(x)[:, None]
        return self._conv("fc", pooled)[:, 0]

    def _conv(self, name: str, x: Tensor, dilation: int = 1) -> Tensor:
        """Convolve [channels, frames] → the same number of frames. The ends are mirrored."""
        weight = self._weights[f"{name}.weight"]
        padding = dilation * (weight.shape[-1] - 1)
        if padding:
            left = padding // 2
            x = functional.pad(x[None], (left, padding - left), mode="reflect")[0]
        bias = self._weights[f"{name}.bias"]
        return functional.conv1d(x[None], weight, bias, dilation=dilation)[0]

    def _tdnn(self, name: str, x: Tensor, dilation: int = 1) -> Tensor:
        return self._conv(f"{name}.conv", x, dilation).relu()

    def _block(self, name: str, x: Tensor, dilation: int) -> Tensor:
        """A Res2Net block: each chunk of channels reads the one before; then a gate per channel."""
        chunks = self._tdnn(f"{name}.tdnn1", x).chunk(self._sizes.res2net_scale)
        outputs = [chunks[0]]
        for i, chunk in enumerate(chunks[1:]):
            inputs = chunk if i == 0 else chunk + outputs[-1]
            outputs.append(self._tdnn(f"{name}.res2net_block.blocks.{i}", inputs, dilation))
        y = self._tdnn(f"{name}.tdnn2", torch.cat(outputs))
        gate = self._conv(f"{name}.se_block.conv1", y.mean(1, keepdim=True)).relu()
        gate = self._conv(f"{name}.se_block.conv2", gate).sigmoid()
        return y * gate + x

    def _pool(self, x: Tensor) -> Tensor:
        """Attentive pooling, [channels, frames] → mean and deviation of each, [2 * channels]."""
        uniform = x.new_full((1, x.shape[1]), 1.0 / x.shape[1])
        mean, deviation = _statistics(x, uniform)
        context = [x, mean[:, None].expand_as(x), deviation[:, None].expand_as(x)]
        scores = self._conv("asp.conv", self._tdnn("asp.tdnn", torch.cat(context)).tanh())
        return torch.cat(_statistics(x, scores.softmax(1)))


def _statistics(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    mean = (weights * x).sum(1)
    variance = (weights * (x - mean[:, None]) ** 2).sum(1)
    return mean, variance.clamp(min=1e-12).sqrt()
