"""Samples codes on the device, for many rows at once, each with its own seed.

The random bits depend on the seed, the number of the code in the speech, and the code. So a speech
draws the same alone, in a batch, or if a step is repeated. Nothing is copied to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.splitmix64 import SIGNED_GOLDEN, mix, shift_right

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.talker.model_config import SamplingConfig

_BITS = 24  # the precision of a float32


def gumbel(chance: Tensor, codes: Tensor) -> Tensor:
    """Gumbel noise for each code [rows, codes], from the random bits of its row [rows]."""
    bits = shift_right(mix(chance[:, None] + codes * SIGNED_GOLDEN), 64 - _BITS)
    return -(-((bits.float() + 0.5) / (1 << _BITS)).log()).log()


def choose(logits: Tensor, chance: Tensor, choice: SamplingConfig) -> Tensor:
    """Logits [rows, vocabulary] and `random_bits` [rows] → codes [rows].

    Applies the temperature, keeps the `top_k` likeliest codes, then those of them that together
    reach `top_p` (Holtzman et al. 2020). Gumbel noise is added to what is left, and the largest
    value wins. Drawing by inversion would be less work, but each of its 50 limits can move across
    the random number when another batch rounds differently: 1 of 7,000 draws changed with the
    batch. Here a draw changes only if two noisy values are equal up to rounding
    (docs/decisions/0043-gumbel-noise.md).
    """
    if choice.temperature == 0:
        return logits.argmax(-1)
    count = min(choice.top_k, logits.shape[-1]) or logits.shape[-1]
    values, codes = (logits / choice.temperature).topk(count)
    if choice.top_p < 1:
        weights = values.softmax(-1)
        before = weights.cumsum(-1) - weights
        values = values.masked_fill(before >= choice.top_p, -torch.inf)
    place = (values + gumbel(chance, codes)).argmax(-1)
    return codes.gather(1, place[:, None])[:, 0]


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits with the codes in `seen` made less likely (Keskar et al. 2019, CTRL)."""
    lowered = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, lowered, logits)
