"""The sizes of the codec's decoder, from the `config.json` beside its weights. Torch-free.

Fields have the names and defaults of the public package's configuration, because a file may leave
out values that equal the default. A value that would change the computation in a way that is not
implemented here is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import TYPE_CHECKING, Any

from stages.contract.errors import CheckpointError
from stages.contract.messages import OUTPUT_RATE_HZ
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from pathlib import Path

MODEL_TYPE = "qwen3_tts_tokenizer_12hz"

_SUPPORTED = {"hidden_act": "silu", "rope_scaling": None, "attention_bias": False}


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """Sizes of the decoder.

    `codebook_dim` is the width of a frame after the quantizer. `decoder_dim` is the width of the
    first convolution; each of `upsample_rates` halves it. `sliding_window` includes the current
    frame.
    """

    codebook_size: int = 2048
    codebook_dim: int = 512
    num_quantizers: int = 16
    latent_dim: int = 1024
    hidden_size: int = 1024
    intermediate_size: int = 3072
    num_hidden_layers: int = 8
    num_attention_heads: int = 16
    head_dim: int = 64
    sliding_window: int = 72
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5
    upsampling_ratios: tuple[int, ...] = (2, 2)
    upsample_rates: tuple[int, ...] = (8, 5, 4, 3)
    decoder_dim: int = 1536

    @property
    def hop(self) -> int:
        """The number of samples in a frame."""
        return prod(self.upsampling_ratios) * prod(self.upsample_rates)


def read_codec_config(folder: Path) -> CodecConfig:
    """Read the `config.json` in a folder.

    Raises CheckpointError for another kind of codec, or for a value that is not supported.
    """
    path = folder / "config.json"
    values = read_json(path)
    kind, rate_hz = values.get("model_type"), values.get("output_sample_rate", OUTPUT_RATE_HZ)
    if kind != MODEL_TYPE:
        raise CheckpointError(f"{path}: model_type is {kind!r}, not {MODEL_TYPE!r}")
    if rate_hz != OUTPUT_RATE_HZ:
        raise CheckpointError(
            f"{path}: output_sample_rate is {rate_hz!r}; only {OUTPUT_RATE_HZ} is supported"
        )
    config = _decoder(path, values.get("decoder_config") or {})
    hop = values.get("decode_upsample_rate", config.hop)
    if hop != config.hop:
        raise CheckpointError(
            f"{path}: decode_upsample_rate is {hop}, but the rates multiply to {config.hop}"
        )
    return config


def _decoder(path: Path, values: dict[str, Any]) -> CodecConfig:
    heads = values.get("num_attention_heads", CodecConfig().num_attention_heads)
    for key, supported in {**_SUPPORTED, "num_key_value_heads": heads}.items():
        if values.get(key, supported) != supported:
            message = f"{path}: {key} is {values[key]!r}; only {supported!r} is supported"
            raise CheckpointError(message)
    names = {field.name for field in fields(CodecConfig)}
    given = {name: values[name] for name in names & values.keys()}
    for name in ("upsampling_ratios", "upsample_rates"):
        given[name] = tuple(given.get(name, getattr(CodecConfig(), name)))
    if "head_dim" not in given:
        given["head_dim"] = given.get("hidden_size", CodecConfig().hidden_size) // heads
    return CodecConfig(**given)
