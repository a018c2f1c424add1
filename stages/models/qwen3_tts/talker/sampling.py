"""Chooses codes on the device: many rows at once, each by its own seed.

Chance is a function of (seed, number of the code in the speech, code): a speech draws the same
alone, in company, or when a step is done again. Nothing is brought to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from stages.models.qwen3_tts.talker.model_config import SamplingConfig

_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FACTORS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)))
_BITS = 24  # as many as a float32 holds


def chances(seeds: Tensor, numbers: Tensor) -> Tensor:
    """64 random bits for int64 seeds and numbers (SplitMix64, Steele et al. 2014, twice)."""
    return _mix(_mix(seeds) + numbers * _GOLDEN)


def gumbel(chance: Tensor, codes: Tensor) -> Tensor:
    """What each code [rows, codes] is to be wished in addition, by its row's chance [rows]."""
    bits = _shifted(_mix(chance[:, None] + codes * _GOLDEN), 64 - _BITS)
    return -(-((bits.float() + 0.5) / (1 << _BITS)).log()).log()


def _mix(state: Tensor) -> Tensor:
    z = state + _GOLDEN
    for bits, factor in _FACTORS:
        z = (z ^ _shifted(z, bits)) * factor
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, bits: int) -> Tensor:
    """A logical shift to the right: torch's keeps the sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def choose(logits: Tensor, chance: Tensor, choice: SamplingConfig) -> Tensor:
    """Logits [rows, vocabulary], `chances` [rows] → codes [rows].

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
