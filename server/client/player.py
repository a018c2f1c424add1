"""What somebody hears who plays a stream while it arrives. Pure arithmetic on times.

A player starts `buffer_s` after the first audio came, or when the stream is complete, and plays
without a break as long as it has something. Where a piece comes later than the audio before it
lasts, the player has run dry once; it goes on as soon as the piece is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

TOLERANCE_S = 1e-9  # of adding floats, not of hearing


@dataclass(frozen=True, slots=True)
class Piece:
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


def listen(pieces: Sequence[Piece], buffer_s: float = 0.0) -> Listening:
    """Play `pieces`, which are in order of arrival. ValueError where there are none."""
    if not pieces:
        raise ValueError("nothing to play")
    started_s = max(pieces[0].at_s, min(pieces[0].at_s + buffer_s, pieces[-1].at_s))
    empty_s, num_underruns, silent_s = started_s, 0, 0.0
    for piece in pieces:
        late_s = piece.at_s - empty_s
        if late_s > TOLERANCE_S:
            num_underruns += 1
            silent_s += late_s
            empty_s = piece.at_s
        empty_s += piece.audio_s
    return Listening(started_s, empty_s, num_underruns, silent_s)
