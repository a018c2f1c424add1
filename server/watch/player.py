"""What a player would have heard of a stream: it starts a little after the first sound was written,
and runs dry where the next comes later than the sound before it lasts. Pure arithmetic on times.
"""

from __future__ import annotations

from dataclasses import dataclass

BUFFER_S = 0.1
TOLERANCE_S = 1e-9  # of adding floats, not of hearing


@dataclass(slots=True)
class Player:
    """One stream's. Counts how often it ran dry (`num_underruns`), and for how long in all."""

    num_underruns: int = 0
    silent_s: float = 0.0
    empty_at: float | None = None  # when all that was written is played

    def take(self, sound_s: float, now: float) -> None:
        """So much sound was written now."""
        if self.empty_at is None:
            self.empty_at = now + BUFFER_S
        elif (late_s := now - self.empty_at) > TOLERANCE_S:
            self.num_underruns += 1
            self.silent_s += late_s
            self.empty_at = now
        self.empty_at += sound_s
