"""What somebody hears who plays a stream while it arrives. Pure arithmetic on times.

A player starts `buffer_s` after the first audio came, and plays without a break as long as it has
something. Where a piece comes later than the audio before it lasts, the player has run dry once; it
goes on as soon as the piece is there. `Player` is told of each piece when it comes, `listen` of all
when the stream is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

BUFFER_S = 0.1  # of the player that a listener is taken to have
TOLERANCE_S = 1e-9  # of adding floats, not of hearing


@dataclass(slots=True)
class Player:
    """One stream's. Counts how often it ran dry, and for how long in all."""

    buffer_s: float
    num_underruns: int = 0
    silent_s: float = 0.0
    empty_at_s: float | None = None  # when all that came is played

    def take(self, audio_s: float, at_s: float) -> None:
        """So much audio came at this time."""
        if self.empty_at_s is None:
            self.empty_at_s = at_s + self.buffer_s
        elif (late_s := at_s - self.empty_at_s) > TOLERANCE_S:
            self.num_underruns += 1
            self.silent_s += late_s
            self.empty_at_s = at_s
        self.empty_at_s += audio_s


@dataclass(frozen=True, slots=True)
class ReceivedAudio:
    """Audio that arrived at once: when, and how long it plays."""

    at_s: float
    audio_s: float


@dataclass(frozen=True, slots=True)
class Listening:
    """`ended_s` is when the last sample was heard."""

    started_s: float
    ended_s: float
    num_underruns: int
    silent_s: float


def listen(pieces: Sequence[ReceivedAudio], buffer_s: float = 0.0) -> Listening:
    """Play `pieces`, which are in order of arrival. ValueError where there are none.

    A stream that is complete sooner than after `buffer_s` is played then.
    """
    if not pieces:
        raise ValueError("nothing to play")
    first_s = pieces[0].at_s
    player = Player(max(0.0, min(buffer_s, pieces[-1].at_s - first_s)))
    for piece in pieces:
        player.take(piece.audio_s, piece.at_s)
    assert player.empty_at_s is not None
    started_s = first_s + player.buffer_s
    return Listening(started_s, player.empty_at_s, player.num_underruns, player.silent_s)
