"""The seed of a request: the one that it names, or a random one."""

from __future__ import annotations

import secrets

SEED_MASK = 2**63 - 1


def seed_of(asked: int | None) -> int:
    """The seed asked for, as the 63 bits that every generator takes, or a new one."""
    return secrets.randbits(63) if asked is None else asked & SEED_MASK
