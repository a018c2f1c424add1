"""Ids of replies, and how long clients may refer to a stored one."""

from __future__ import annotations

import secrets

SYSTEM_FINGERPRINT = "fp_nano_vllm_omni"
STORED_S = 3600


def new_id(prefix: str, num_bytes: int = 12) -> str:
    """`prefix` and random hexadecimal digits. Nobody can guess it: who knows it may use it."""
    return prefix + secrets.token_hex(num_bytes)
