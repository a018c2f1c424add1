"""Chooses codes on the device: many rows at once, each by its own seed.

Chance is a function of (seed, number of the code in the speech, code): a speech draws the same
alone, in company, or when a step is done again. Nothing is brought to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.splitmix64 import SIGNED_GOLDEN, mix, shift_right

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.talker.model_config import SamplingConfig

_BITS = 24  # as many as a float32 holds


def gumbel(chance: Tensor, codes: Tensor) -> Tensor:
    """What each code [rows, codes] is to be wished in addition, by its row's chance [rows]."""
    bits = shift_right(mix(chance[:, None] + codes * SIGNED_GOLDEN), 64 - _BITS)
    return -(-((bits.float() + 0.5) / (1 << _BITS)).log()).log()


def choose(logits: Tensor, chance: Tensor, choice: SamplingConfig) -> Tensor:
    """Logits [rows, vocabulary], `random_bits` [rows] → codes [rows].

    Temperature, then the `top_k` likeliest, then those of them that together reach `top_p`
    (Holtzman et al. 2020); of these the one that is wished most, with noise of Gumbel's kind. To
    draw by inversion would be less work, but has 50 limits that the rounding of a batch can move
    over a number: with it 1 of 7,000 draws changed with the company, where here two wishes have to
    be equal (docs/decisions/0043-gumbel-noise.md).
    """
    if choice.temperature == 0:
        return logits.argmax(-1)
    count = min(choice.top_k, logits.shape[-1]) or logits.shape[-1]
    wishes, codes = (logits / choice.temperature).topk(count)
    if choice.top_p < 1:
        weights = wishes.softmax(-1)
        before = weights.cumsum(-1) - weights
        wishes = wishes.masked_fill(before >= choice.top_p, -torch.inf)
    place = (wishes + gumbel(chance, codes)).argmax(-1)
    return codes.gather(1, place[:, None])[:, 0]


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits of codes that were said before made less likely (Keskar et al. 2019, CTRL)."""
    less = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, less, logits)
