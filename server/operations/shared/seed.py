"""The seed of a request, and the seeds of its choices."""

from __future__ import annotations

import secrets

SEED_MASK = 2**63 - 1


def seed_of(requested: int | None) -> int:
    """The requested seed, cut to the 63 bits that every generator takes, or a random one."""
    return secrets.randbits(63) if requested is None else requested & SEED_MASK


def choice_seed(seed: int, index: int) -> int:
    """The seed of choice `index`: `seed` plus the index, in 63 bits."""
    return (seed + index) & SEED_MASK
