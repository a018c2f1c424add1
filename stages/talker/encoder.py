"""The text encoder of VITS: a transformer whose attention knows how far apart two phonemes are.

Relative positions up to a window (4 in Piper's voices) have learned keys and values, shared by the
heads (Shaw et al. 2018, arXiv 1803.02155). Shapes are [phonemes, channels].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.convolution import Dense

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
        self._mix = parameters.dense(*(f"{module}.conv_{kind}" for kind in "qkv"))
        self._out = parameters.dense(f"{module}.conv_o")
        self._near_keys = parameters.tensor(f"{module}.emb_rel_k")[0]  # [2 * window + 1, size]
        self._near_values = parameters.tensor(f"{module}.emb_rel_v")[0]
        self._size = self._near_keys.shape[1]
        self._window = len(self._near_keys) // 2

    def __call__(self, rows: Tensor) -> Tensor:
        length, window = len(rows), self._window
        mix = self._mix(rows).view(length, 3, -1, self._size)
        query, key, value = mix.permute(1, 2, 0, 3)  # each [heads, phonemes, size]
        query = query / math.sqrt(self._size)
        scores = functional.pad(query @ key.transpose(1, 2), (window, window))
        self._near(scores).add_(query @ self._near_keys.T)
        weights = scores[:, :, window : window + length].softmax(dim=2)
        near = self._near(functional.pad(weights, (window, window)))
        mixed = weights @ value + near @ self._near_values
        return self._out(mixed.transpose(0, 1).reshape(rows.shape))

    def _near(self, padded: Tensor) -> Tensor:
        """Of [heads, phonemes, phonemes with `window` more on both sides] what is within the window
        of each phoneme, [heads, phonemes, 2 * window + 1]: a view."""
        heads, length, width = padded.shape
        shape, steps = (heads, length, 2 * self._window + 1), (length * width, width + 1, 1)
        return padded.as_strided(shape, steps)


class _FeedForward:
    """Two convolutions, the first to many channels and the second back.

    What the second reads would be some copies of the widest signal of all. So it computes what each
    row gives to its neighbours and to itself, in one product, and adds that up where it belongs.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        self._widen = parameters.dense(f"{module}.conv_1")
        weight, bias = parameters.convolution(f"{module}.conv_2")
        self._size = weight.shape[2]
        weights = weight.permute(2, 0, 1).flatten(0, 1)[:, :, None]
        biases = bias.new_zeros(self._size, len(bias))
        biases[self._size // 2] = bias
        self._narrow = Dense(weights, biases.flatten())

    def added(self, rows: Tensor) -> Tensor:
        """`rows` and what is made of them."""
        length, middle = len(rows), self._size // 2
        reach = self._widen.reach
        wide = self._widen.blocks(functional.pad(rows, (0, 0, reach, reach))).relu_()
        given = self._narrow.blocks(wide)[:length].chunk(self._size, dim=1)
        out = rows + given[middle]
        for distance in range(1, middle + 1):
            out[distance:] += given[middle - distance][:-distance]
            out[:-distance] += given[middle + distance][distance:]
        return out


class _Layer:
    """Attention and two convolutions, each added and then normalised."""

    def __init__(self, parameters: Parameters, module: str, number: int) -> None:
        self._attention = _Attention(parameters, f"{module}.attn_layers.{number}")
        self._norm_1 = Norm(parameters, f"{module}.norm_layers_1.{number}")
        self._feed_forward = _FeedForward(parameters, f"{module}.ffn_layers.{number}")
        self._norm_2 = Norm(parameters, f"{module}.norm_layers_2.{number}")

    def __call__(self, rows: Tensor) -> Tensor:
        rows = self._norm_1(rows + self._attention(rows))
        return self._norm_2(self._feed_forward.added(rows))


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
