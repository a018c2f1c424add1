"""The encoder of the 12 Hz codec: turns a recording into frames, for a speech that continues it.

This is Mimi's encoder (Defossez et al. 2024, "Moshi"): causal convolutions, a transformer with a
sliding window, one more downsampling by two, and residual vector quantization with the first
codebook apart. It runs once for each voice, in float32, in short parts, so that the stage can make
frames for other requests in between. The decoder of the codec is in code2wav.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from stages.contract.errors import CheckpointError
from stages.weights.json_file import read_json
from stages.weights.safetensors import Part, Weights

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from torch import Tensor

_PREFIX = "encoder."
_PART_FRAMES = 12  # frames of 40 ms in one part of the convolutions


@dataclass(frozen=True, slots=True)
class _Sizes:
    ratios: tuple[int, ...]  # the strides, the last one first
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
    """The encoder of the codec in `folder`, the checkpoint's `speech_tokenizer`."""

    def __init__(self, folder: Path, device: torch.device) -> None:
        """Open the weights. Raises CheckpointError if the folder has no encoder."""
        self._sizes = _sizes(folder)
        self._weights = Part(Weights(folder), _PREFIX, device)
        if "downsample.conv.weight" not in self._weights:
            raise CheckpointError(f"{folder} has no encoder; only Base checkpoints can copy voices")
        self._hop = math.prod(self._sizes.ratios)

    def num_frames(self, num_samples: int) -> int:
        """The number of frames of 80 ms in `num_samples`, rounded up."""
        return -(-num_samples // (2 * self._hop))

    def __call__(self, samples: Tensor) -> Generator[None, None, Tensor]:
        """Encode samples [n] at 24 kHz, on the device → int64 codes [`num_frames`, groups].

        Yields between parts of the work.
        """
        contexts: dict[str, Tensor] = {}
        parts = []
        for part in torch.split(samples, _PART_FRAMES * self._hop):
            parts.append(self._convolve(part[None], contexts))
            yield
        x = (yield from self._transform(torch.cat(parts, 1).T)).T
        x = self._downsample(x)
        semantic = self._quantize("semantic", x, self._sizes.num_semantic)
        acoustic = self._quantize("acoustic", x, self._sizes.num_groups - self._sizes.num_semantic)
        return torch.stack([*semantic, *acoustic], 1)

    def _convolve(self, x: Tensor, contexts: dict[str, Tensor]) -> Tensor:
        """Convolve a part, [1, samples] → [hidden, frames at twice the codec's rate].

        `contexts` has the left context of each convolution, by name. It is updated for the next
        part.
        """
        sizes = self._sizes
        x = self._conv("encoder.layers.0.conv", x, contexts)
        layer = 1
        for ratio in reversed(sizes.ratios):
            for unit in range(sizes.num_residual):
                name = f"encoder.layers.{layer}.block"
                dilation = sizes.dilation_growth**unit
                y = self._conv(f"{name}.1.conv", functional.elu(x), contexts, dilation=dilation)
                x = x + self._conv(f"{name}.3.conv", functional.elu(y), contexts)
                layer += 1
            x = self._conv(
                f"encoder.layers.{layer + 1}.conv", functional.elu(x), contexts, stride=ratio
            )
            layer += 2
        return self._conv(f"encoder.layers.{layer + 1}.conv", functional.elu(x), contexts)

    def _conv(
        self,
        name: str,
        x: Tensor,
        contexts: dict[str, Tensor],
        *,
        stride: int = 1,
        dilation: int = 1,
    ) -> Tensor:
        """A causal convolution that continues the last part. Pads the end to a whole stride."""
        weight = self._weights[f"{name}.weight"]
        left = (weight.shape[-1] - 1) * dilation + 1 - stride
        right = -x.shape[-1] % stride
        context = contexts[name] if name in contexts else x.new_zeros(len(x), left)
        x = torch.cat([context, x], 1)
        contexts[name] = x[:, x.shape[1] - left :].clone()
        x = functional.pad(x[None], (0, right))
        bias = self._weights.get(f"{name}.bias")
        return functional.conv1d(x, weight, bias, stride=stride, dilation=dilation)[0]

    def _downsample(self, x: Tensor) -> Tensor:
        """Turn two frames into one. The ends are padded with copies of the outermost frames."""
        weight = self._weights["downsample.conv.weight"]
        x = functional.pad(x[None], (weight.shape[-1] - 2, x.shape[-1] % 2), mode="replicate")
        return functional.conv1d(x, weight, self._weights.get("downsample.conv.bias"), stride=2)[0]

    def _transform(self, x: Tensor) -> Generator[None, None, Tensor]:
        """Run the transformer, [frames, hidden] → the same shape. Yields after each layer.

        Each frame attends to a window of frames that ends with itself.
        """
        position = torch.arange(len(x), device=x.device)
        distance = position[:, None] - position
        visible = (distance >= 0) & (distance < self._sizes.window)
        for layer in range(self._sizes.num_layers):
            name = f"encoder_transformer.layers.{layer}"
            y = self._norm(f"{name}.input_layernorm", x)
            y = self._attend(f"{name}.self_attn", y, visible)
            x = x + y * self._weights[f"{name}.self_attn_layer_scale.scale"]
            y = self._norm(f"{name}.post_attention_layernorm", x)
            y = functional.linear(y, self._weights[f"{name}.mlp.fc1.weight"])
            y = functional.linear(functional.gelu(y), self._weights[f"{name}.mlp.fc2.weight"])
            x = x + y * self._weights[f"{name}.mlp_layer_scale.scale"]
            yield
        return x

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(x, (x.shape[-1],), weight, bias, self._sizes.norm_eps)

    def _attend(self, name: str, x: Tensor, visible: Tensor) -> Tensor:
        sizes = self._sizes
        q, k, v = (
            functional.linear(x, self._weights[f"{name}.{part}_proj.weight"])
            .view(len(x), sizes.num_heads, sizes.head_dim)
            .transpose(0, 1)
            for part in "qkv"
        )
        y = functional.scaled_dot_product_attention(
            self._rotated(q), self._rotated(k), v, attn_mask=visible
        )
        y = y.transpose(0, 1).reshape(len(x), -1)
        return functional.linear(y, self._weights[f"{name}.o_proj.weight"])

    def _rotated(self, x: Tensor) -> Tensor:
        """Apply the rotary embedding to [heads, frames, dim]."""
        dim = x.shape[-1]
        half = torch.arange(0, dim, 2, device=x.device) / dim
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * self._sizes.rope_theta**-half
        cosines, sines = angles.cos().repeat(1, 2), angles.sin()
        swapped = x.roll(dim // 2, -1)
        return x * cosines + swapped * torch.cat([-sines, sines], 1)

    def _quantize(self, kind: str, x: Tensor, num_groups: int) -> list[Tensor]:
        """Quantize [hidden, frames] → the codes of each group [frames].

        Each codebook quantizes the residual that the codebooks before it left.
        """
        name = f"quantizer.{kind}_residual_vector_quantizer"
        residual = functional.conv1d(x[None], self._weights[f"{name}.input_proj.weight"])[0].T
        codes = []
        for group in range(num_groups):
            codebook = f"{name}.layers.{group}.codebook"
            usage = self._weights[f"{codebook}.cluster_usage"].clamp(min=1e-5)
            entries = self._weights[f"{codebook}.embed_sum"] / usage[:, None]
            codes.append(torch.cdist(residual[None], entries[None])[0].argmin(1))
            residual = residual - entries[codes[-1]]
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
