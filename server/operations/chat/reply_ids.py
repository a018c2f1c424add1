"""The ids and times that all parts of one chat reply have in common."""

from __future__ import annotations

import time
from dataclasses import dataclass

from server.operations.shared.ids import STORED_S, new_id


@dataclass(frozen=True, slots=True)
class ReplyIds:
    """The ids and times of one reply. Each choice has an audio id of its own."""

    completion_id: str
    audio_ids: tuple[str, ...]
    created: int
    model: str

    @property
    def expires_at(self) -> int:
        """Until when a client may refer to the audio ids, in Unix time."""
        return self.created + STORED_S


def new_reply_ids(model: str, num_choices: int) -> ReplyIds:
    """Ids for a reply that starts now."""
    audio_ids = tuple(new_id("audio_") for _ in range(num_choices))
    return ReplyIds(new_id("chatcmpl-"), audio_ids, int(time.time()), model)
