"""Chooses codes on the device: many rows at once, each by its own seed.

Chance is a function of (seed, number of the code in the speech), as in the thinker: a speech draws
the same alone, in company, or when a step is done again. Nothing is brought to the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from stages.talker.qwen.model_config import Choice

_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)
_FACTORS = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)))
_BITS = 24  # as many as a float32 holds


def uniform(seeds: Tensor, numbers: Tensor) -> Tensor:
    """Numbers in [0, 1) for int64 seeds and numbers: SplitMix64 (Steele et al. 2014)."""
    mixed = _mix(_mix(seeds) + numbers * _GOLDEN)
    return _shifted(mixed, 64 - _BITS).float() / (1 << _BITS)


def _mix(state: Tensor) -> Tensor:
    z = state + _GOLDEN
    for bits, factor in _FACTORS:
        z = (z ^ _shifted(z, bits)) * factor
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, bits: int) -> Tensor:
    """A logical shift to the right: torch's keeps the sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def choose(logits: Tensor, chance: Tensor, choice: Choice) -> Tensor:
    """Logits [rows, vocabulary], numbers in [0, 1) [rows] → codes [rows].

    Temperature, then the `top_k` likeliest, then those of them that together reach `top_p`
    (Holtzman et al. 2020); of these one, by inversion.
    """
    if choice.temperature == 0:
        return logits.argmax(-1)
    count = min(choice.top_k, logits.shape[-1]) or logits.shape[-1]
    values, ids = (logits / choice.temperature).topk(count)
    weights = values.softmax(-1)
    if choice.top_p < 1:
        before = weights.cumsum(-1) - weights
        weights = weights.masked_fill(before >= choice.top_p, 0.0)
    sums = weights.cumsum(-1)
    place = (sums <= chance[:, None] * sums[:, -1:]).sum(-1)
    return ids.gather(1, place.clamp(max=count - 1)[:, None])[:, 0]


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits of codes that were said before made less likely (Keskar et al. 2019, CTRL)."""
    less = torch.where(logits > 0, logits / penalty, logits * penalty)
    return torch.where(seen, less, logits)
