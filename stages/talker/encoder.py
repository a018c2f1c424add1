"""The text encoder of VITS: a transformer whose attention knows how far apart two phonemes are.

Relative positions up to a window (4 in Piper's voices) have learned keys and values, shared by the
heads (Shaw et al. 2018, arXiv 1803.02155). Shapes are [phonemes, channels].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

    from stages.convolution import Parameters


class Norm:
    """Layer normalisation over the channels."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._gamma = parameters.tensor(f"{module}.gamma")
        self._beta = parameters.tensor(f"{module}.beta")

    def __call__(self, rows: Tensor) -> Tensor:
        return functional.layer_norm(rows, self._gamma.shape, self._gamma, self._beta, eps=1e-5)


class _Attention:
    """Self-attention over a piece."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._query, self._key, self._value, self._out = (
            parameters.dense(f"{module}.conv_{kind}") for kind in "qkvo"
        )
        self._near_keys = parameters.tensor(f"{module}.emb_rel_k")[0]  # [2 * window + 1, size]
        self._near_values = parameters.tensor(f"{module}.emb_rel_v")[0]
        self._size = self._near_keys.shape[1]

    def __call__(self, rows: Tensor) -> Tensor:
        query = self._heads(self._query(rows)) / math.sqrt(self._size)
        scores = query @ self._heads(self._key(rows)).transpose(1, 2)
        near = query @ self._near_keys.T
        for offset, at in self._offsets(len(rows)):
            first = max(0, -offset)
            diagonal = scores.diagonal(offset, 1, 2)
            diagonal += near[:, first : first + diagonal.shape[1], at]
        weights = scores.softmax(dim=2)
        near.zero_()
        for offset, at in self._offsets(len(rows)):
            first = max(0, -offset)
            diagonal = weights.diagonal(offset, 1, 2)
            near[:, first : first + diagonal.shape[1], at] = diagonal
        mixed = weights @ self._heads(self._value(rows)) + near @ self._near_values
        return self._out(mixed.transpose(0, 1).reshape(rows.shape))

    def _heads(self, rows: Tensor) -> Tensor:
        """[phonemes, channels] to [heads, phonemes, size]."""
        return rows.view(len(rows), -1, self._size).transpose(0, 1)

    def _offsets(self, length: int) -> list[tuple[int, int]]:
        """Distances within the window that occur in a piece, and where their vectors are."""
        window = len(self._near_keys) // 2
        nearest = min(window, length - 1)
        return [(offset, offset + window) for offset in range(-nearest, nearest + 1)]


class _Layer:
    """Attention and two convolutions, each added and then normalised."""

    def __init__(self, parameters: Parameters, module: str, number: int) -> None:
        self._attention = _Attention(parameters, f"{module}.attn_layers.{number}")
        self._norm_1 = Norm(parameters, f"{module}.norm_layers_1.{number}")
        self._conv_1 = parameters.dense(f"{module}.ffn_layers.{number}.conv_1")
        self._conv_2 = parameters.dense(f"{module}.ffn_layers.{number}.conv_2")
        self._norm_2 = Norm(parameters, f"{module}.norm_layers_2.{number}")

    def __call__(self, rows: Tensor) -> Tensor:
        rows = self._norm_1(rows + self._attention(rows))
        return self._norm_2(rows + self._conv_2(self._conv_1(rows).relu_()))


class TextEncoder:
    """Phoneme ids [phonemes] to hidden states and to mean and log scale of the prior."""

    def __init__(self, parameters: Parameters) -> None:
        self._embedding = parameters.tensor("enc_p.emb.weight")
        num_layers = parameters.count("enc_p.encoder.attn_layers.{}.conv_q")
        self._layers = [_Layer(parameters, "enc_p.encoder", n) for n in range(num_layers)]
        self._proj = parameters.dense("enc_p.proj")

    def __call__(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows = self._embedding[ids] * math.sqrt(self._embedding.shape[1])
        for layer in self._layers:
            rows = layer(rows)
        mean, log_scale = torch.chunk(self._proj(rows), 2, dim=1)
        return rows, mean, log_scale
