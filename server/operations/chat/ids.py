"""What is the same in everything that is sent for one chat completion."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

AUDIO_LIFE_S = 3600
FINGERPRINT = "fp_nano_vllm_omni"


@dataclass(frozen=True, slots=True)
class ReplyNames:
    """The ids and times of one reply; each choice has sound of its own."""

    completion_id: str
    audio_ids: tuple[str, ...]
    created: int
    model: str

    @property
    def expires_at(self) -> int:
        """Until when a client may count on the audio's id."""
        return self.created + AUDIO_LIFE_S


def new_names(model: str, num_choices: int) -> ReplyNames:
    """Names for a new reply."""
    return ReplyNames(
        f"chatcmpl-{secrets.token_hex(12)}",
        tuple(f"audio_{secrets.token_hex(12)}" for _ in range(num_choices)),
        int(time.time()),
        model,
    )
