"""The text encoder of VITS: a transformer with relative positions in its attention.

Distances up to a window (4 in Piper's voices) have learned keys and values, shared by the heads
(Shaw et al. 2018, arXiv 1803.02155). Shapes are [phonemes, channels].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.kernels.convolution import Dense, padded_length

if TYPE_CHECKING:
    from stages.kernels.convolution import Parameters


class Norm(nn.Module):
    """Layer normalisation over the channels."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        self._gamma = parameters.tensor(f"{module}.gamma")
        self._beta = parameters.tensor(f"{module}.beta")

    def forward(self, rows: Tensor) -> Tensor:
        return functional.layer_norm(rows, self._gamma.shape, self._gamma, self._beta, eps=1e-5)


class _Attention(nn.Module):
    """Self-attention over the phonemes of a phrase."""

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        self._near_keys = parameters.tensor(f"{module}.emb_rel_k")[0]  # [2 * window + 1, size]
        self._near_values = parameters.tensor(f"{module}.emb_rel_v")[0]
        self._size = self._near_keys.shape[1]
        self._window = len(self._near_keys) // 2
        weights, biases = zip(
            *(parameters.convolution(f"{module}.conv_{kind}") for kind in "qkv"), strict=True
        )
        for query in (weights[0], biases[0]):
            query /= math.sqrt(self._size)
        self._qkv = Dense(torch.cat(weights), torch.cat(biases))
        self._out = parameters.dense(f"{module}.conv_o")

    def qkv(self, rows: Tensor) -> Tensor:
        """Queries, keys and values of all heads, side by side."""
        return self._qkv.valid_padded(rows)

    def forward(self, qkv: Tensor, length: int) -> Tensor:
        window = self._window
        heads = qkv.view(len(qkv), 3, -1, self._size)
        # Each [heads, phonemes, size].
        query, key, value = heads[:length].permute(1, 2, 0, 3).unbind()
        scores = functional.pad(query @ key.transpose(1, 2), [window, window], value=-math.inf)
        self._near(scores).add_(query @ self._near_keys.T)
        weights = scores.softmax(dim=2)
        far, near = weights[:, :, window : window + length], self._near(weights)
        mixed = qkv.new_zeros([len(qkv), heads.shape[2], heads.shape[3]])
        torch.add(far @ value, near @ self._near_values, out=mixed[:length].transpose(0, 1))
        return self._out.valid_padded(mixed.flatten(1))

    def _near(self, padded: Tensor) -> Tensor:
        """The entries within the window of each phoneme, [heads, phonemes, 2 * window + 1]: a view
        of [heads, phonemes, phonemes + 2 * window], which is padded by `window` on both sides."""
        heads, length, width = padded.shape
        shape, steps = [heads, length, 2 * self._window + 1], [length * width, width + 1, 1]
        return padded.as_strided(shape, steps)


class _FeedForward(nn.Module):
    """Two convolutions, the first to many channels and the second back.

    As a `Dense`, the second would read several copies of the widest signal of all. Instead, one
    product computes what each row adds to itself and to its neighbours, and these are summed.
    """

    def __init__(self, parameters: Parameters, module: str) -> None:
        super().__init__()
        self._widen = parameters.dense(f"{module}.conv_1")
        weight, bias = parameters.convolution(f"{module}.conv_2")
        self._size = weight.shape[2]
        weights = weight.permute(2, 0, 1).flatten(0, 1)[:, :, None]
        biases = bias.new_zeros(self._size, len(bias))
        biases[self._size // 2] = bias
        self._narrow = Dense(weights, biases.flatten())

    def add_to(self, rows: Tensor, length: int) -> None:
        """Add the result for `rows` to them, in place."""
        middle, reach = self._size // 2, self._widen.reach
        wide = self._widen.valid_padded(functional.pad(rows[:length], [0, 0, reach, reach])).relu_()
        parts = self._narrow.valid_padded(wide)[:length].chunk(self._size, dim=1)
        own = rows[:length]
        own += parts[middle]
        for distance in range(1, middle + 1):
            own[distance:] += parts[middle - distance][:-distance]
            own[:-distance] += parts[middle + distance][distance:]


class _Layer(nn.Module):
    """Attention and feed-forward; each is added to its input, then normalised."""

    def __init__(self, parameters: Parameters, module: str, number: int) -> None:
        super().__init__()
        self.attention = _Attention(parameters, f"{module}.attn_layers.{number}")
        self._norm_1 = Norm(parameters, f"{module}.norm_layers_1.{number}")
        self._feed_forward = _FeedForward(parameters, f"{module}.ffn_layers.{number}")
        self._norm_2 = Norm(parameters, f"{module}.norm_layers_2.{number}")

    def forward(self, rows: Tensor, length: int, qkv: Tensor | None) -> Tensor:
        """`qkv` are the queries, keys and values of the rows, if they are known already."""
        if qkv is None:
            qkv = self.attention.qkv(rows)
        rows = self._norm_1(self.attention(qkv, length).add_(rows))
        self._feed_forward.add_to(rows, length)
        normalised: Tensor = self._norm_2(rows)
        return normalised


class TextEncoder(nn.Module):
    """Phoneme ids [phonemes] → hidden states, and mean and log scale of the prior.

    The hidden states have more rows, of undefined content, up to the end of a block.
    """

    def __init__(self, parameters: Parameters) -> None:
        super().__init__()
        embedding = parameters.tensor("enc_p.emb.weight")
        embedding *= math.sqrt(embedding.shape[1])
        num_layers = parameters.count("enc_p.encoder.attn_layers.{}.conv_q")
        layers = [_Layer(parameters, "enc_p.encoder", n) for n in range(num_layers)]
        self._layers = nn.ModuleList(layers)
        self._proj = parameters.dense("enc_p.proj")
        self._embedding = embedding
        self._first_qkv = layers[0].attention.qkv(embedding)  # the first layer's, of each id

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        length = len(ids)
        ids = functional.pad(ids, [0, padded_length(length) - length])
        rows = functional.embedding(ids, self._embedding)
        first_qkv = functional.embedding(ids, self._first_qkv)
        for number, layer in enumerate(self._layers):
            rows = layer(rows, length, first_qkv if number == 0 else None)
        mean, log_scale = self._proj.valid_padded(rows)[:length].chunk(2, dim=1)
        return rows, mean, log_scale
