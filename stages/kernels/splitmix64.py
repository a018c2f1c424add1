"""SplitMix64 (Steele et al. 2014): random bits as a function of a seed and a number.

The generator is started twice: once from the seed, and once from that result plus the number. So
token 7 of seed 3 draws the same bits alone, in a batch, and when a step is repeated.
There are two forms with the same bits, one for the host and one for a device. Python's integers do
not wrap at 64 bits and int64 tensors have no logical shift, so each form masks in another place.
Sharing one form would add operations to the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

GOLDEN = 0x9E3779B97F4A7C15  # what each number adds to the state
_FACTOR_1 = 0xBF58476D1CE4E5B9
_FACTOR_2 = 0x94D049BB133111EB
_MASK = (1 << 64) - 1
# The same constants as int64 values.
SIGNED_GOLDEN = GOLDEN - (1 << 64)
_SIGNED_FACTORS = ((30, _FACTOR_1 - (1 << 64)), (27, _FACTOR_2 - (1 << 64)))


def uniform(seed: int, number: int) -> float:
    """A number in [0, 1) with 32 random bits, computed on the host."""
    return (_mix(_mix(seed) + number * GOLDEN) >> 32) / (1 << 32)


def _mix(state: int) -> int:
    z = (state + GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FACTOR_1) & _MASK
    z = ((z ^ (z >> 27)) * _FACTOR_2) & _MASK
    return z ^ (z >> 31)


def random_bits(seeds: Tensor, numbers: Tensor) -> Tensor:
    """64 random bits (int64) for int64 seeds and numbers, computed on their device."""
    return mix(mix(seeds) + numbers * SIGNED_GOLDEN)


def mix(state: Tensor) -> Tensor:
    """The output of the generator for each int64 state."""
    z = state + SIGNED_GOLDEN
    for bits, factor in _SIGNED_FACTORS:
        z = (z ^ shift_right(z, bits)) * factor
    return z ^ shift_right(z, 31)


def shift_right(z: Tensor, bits: int) -> Tensor:
    """A logical shift of int64 values; torch's own shift keeps the sign."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
