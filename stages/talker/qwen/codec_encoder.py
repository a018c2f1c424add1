"""The 12 Hz tokenizer's encoder: a recording as codec frames, for a speech that goes on from it.

Mimi's encoder (Defossez et al. 2024, "Moshi"): causal convolutions, a transformer with a window,
a last halving of the rate, and residual vector quantisation, the first codebook apart. The decoder
is code2wav's. Computed in float32, once for a voice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from stages.checkpoint import Weights
from stages.errors import CheckpointError
from stages.read_json import read_json

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

_PREFIX = "encoder."


@dataclass(frozen=True, slots=True)
class _Sizes:
    ratios: tuple[int, ...]  # of the strides, the last first
    num_residual: int
    dilation_growth: int
    num_layers: int
    num_heads: int
    head_dim: int
    window: int
    rope_theta: float
    norm_eps: float
    num_semantic: int
    num_groups: int


class CodecEncoder:
    """Reads `folder`, the checkpoint's `speech_tokenizer`."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        """Raises CheckpointError."""
        self._sizes = _sizes(folder)
        weights = Weights(folder)
        self._weights = {
            name.removeprefix(_PREFIX): weights[name].to(device, torch.float32)
            for name in weights
            if name.startswith(_PREFIX)
        }
        if "downsample.conv.weight" not in self._weights:
            raise CheckpointError(f"{folder} has no encoder")
        self._device = device

    def __call__(self, samples: Tensor) -> Tensor:
        """Samples [n] at 24 kHz → int64 codes [frames of 80 ms, the last begun, groups]."""
        x = self._convolve(samples.to(self._device)[None])
        x = self._transform(x.T).T
        x = self._conv("downsample.conv", x, stride=2, mode="replicate")
        semantic = self._quantise("semantic", x, self._sizes.num_semantic)
        rest = self._quantise("acoustic", x, self._sizes.num_groups - self._sizes.num_semantic)
        return torch.stack([*semantic, *rest], 1)

    def _convolve(self, x: Tensor) -> Tensor:
        """[1, samples] → [hidden, frames at twice the codec's rate]."""
        sizes = self._sizes
        x = self._conv("encoder.layers.0.conv", x)
        at = 1
        for ratio in reversed(sizes.ratios):
            for number in range(sizes.num_residual):
                name = f"encoder.layers.{at}.block"
                dilation = sizes.dilation_growth**number
                y = self._conv(f"{name}.1.conv", functional.elu(x), dilation=dilation)
                x = x + self._conv(f"{name}.3.conv", functional.elu(y))
                at += 1
            x = self._conv(f"encoder.layers.{at + 1}.conv", functional.elu(x), stride=ratio)
            at += 2
        return self._conv(f"encoder.layers.{at + 1}.conv", functional.elu(x))

    def _conv(
        self, name: str, x: Tensor, *, stride: int = 1, dilation: int = 1, mode: str = "constant"
    ) -> Tensor:
        """A causal convolution; the end is filled up to a whole stride."""
        weight = self._weights[f"{name}.weight"]
        left = (weight.shape[-1] - 1) * dilation + 1 - stride
        right = -x.shape[-1] % stride
        x = functional.pad(x[None], (left, right), mode=mode)
        bias = self._weights.get(f"{name}.bias")
        return functional.conv1d(x, weight, bias, stride=stride, dilation=dilation)[0]

    def _transform(self, x: Tensor) -> Tensor:
        """[frames, hidden] → the same; each sees itself and the window before it."""
        at = torch.arange(len(x), device=x.device)
        back = at[:, None] - at
        seen = (back >= 0) & (back < self._sizes.window)
        for layer in range(self._sizes.num_layers):
            name = f"encoder_transformer.layers.{layer}"
            y = self._norm(f"{name}.input_layernorm", x)
            y = self._attend(f"{name}.self_attn", y, seen)
            x = x + y * self._weights[f"{name}.self_attn_layer_scale.scale"]
            y = self._norm(f"{name}.post_attention_layernorm", x)
            y = functional.linear(y, self._weights[f"{name}.mlp.fc1.weight"])
            y = functional.linear(functional.gelu(y), self._weights[f"{name}.mlp.fc2.weight"])
            x = x + y * self._weights[f"{name}.mlp_layer_scale.scale"]
        return x

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(x, (x.shape[-1],), weight, bias, self._sizes.norm_eps)

    def _attend(self, name: str, x: Tensor, seen: Tensor) -> Tensor:
        sizes = self._sizes
        q, k, v = (
            functional.linear(x, self._weights[f"{name}.{part}_proj.weight"])
            .view(len(x), sizes.num_heads, sizes.head_dim)
            .transpose(0, 1)
            for part in "qkv"
        )
        y = functional.scaled_dot_product_attention(
            self._rotated(q), self._rotated(k), v, attn_mask=seen
        )
        y = y.transpose(0, 1).reshape(len(x), -1)
        return functional.linear(y, self._weights[f"{name}.o_proj.weight"])

    def _rotated(self, x: Tensor) -> Tensor:
        """[heads, frames, dim], by their frame."""
        dim = x.shape[-1]
        half = torch.arange(0, dim, 2, device=x.device) / dim
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * self._sizes.rope_theta**-half
        cosines, sines = angles.cos().repeat(1, 2), angles.sin()
        swapped = x.roll(dim // 2, -1)
        return x * cosines + swapped * torch.cat([-sines, sines], 1)

    def _quantise(self, kind: str, x: Tensor, num_groups: int) -> list[Tensor]:
        """[hidden, frames] → the nearest codes, each of what those before it left."""
        name = f"quantizer.{kind}_residual_vector_quantizer"
        rest = functional.conv1d(x[None], self._weights[f"{name}.input_proj.weight"])[0].T
        codes = []
        for group in range(num_groups):
            codebook = f"{name}.layers.{group}.codebook"
            usage = self._weights[f"{codebook}.cluster_usage"].clamp(min=1e-5)
            entries = self._weights[f"{codebook}.embed_sum"] / usage[:, None]
            codes.append(torch.cdist(rest[None], entries[None])[0].argmin(1))
            rest = rest - entries[codes[-1]]
        return codes


def _sizes(folder: Path) -> _Sizes:
    config = read_json(folder / "config.json")
    encoder: dict[str, Any] = config.get("encoder_config", {})
    heads = encoder.get("num_attention_heads", 8)
    return _Sizes(
        ratios=tuple(encoder.get("upsampling_ratios", (8, 6, 5, 4))),
        num_residual=encoder.get("num_residual_layers", 1),
        dilation_growth=encoder.get("dilation_growth_rate", 2),
        num_layers=encoder.get("num_hidden_layers", 8),
        num_heads=heads,
        head_dim=encoder.get("head_dim") or encoder.get("hidden_size", 512) // heads,
        window=encoder.get("sliding_window", 250),
        rope_theta=encoder.get("rope_theta", 10000.0),
        norm_eps=encoder.get("norm_eps", 1e-5),
        num_semantic=encoder.get("num_semantic_quantizers", 1),
        num_groups=config.get("encoder_valid_num_quantizers", 16),
    )
