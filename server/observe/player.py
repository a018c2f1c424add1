"""What a listener hears of a whole stream: when it starts, when it ends, how long it is silent.

Replays the arrival times of a finished stream through `JitterBuffer`. The timeline of a running
request uses `JitterBuffer` directly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.contract.jitter_buffer import JitterBuffer

if TYPE_CHECKING:
    from collections.abc import Sequence

BUFFER_S = 0.1  # the delay of the jitter buffer that a listener is assumed to have


@dataclass(frozen=True, slots=True)
class ReceivedAudio:
    """Audio that arrived at one moment: when, and how long it plays."""

    at_s: float
    audio_s: float


@dataclass(frozen=True, slots=True)
class Listening:
    """The result of `listen`. `ended_s` is when the last sample was heard."""

    started_s: float
    ended_s: float
    num_underruns: int
    silent_s: float


def listen(pieces: Sequence[ReceivedAudio], buffer_s: float = 0.0) -> Listening:
    """Play `pieces`, which are in order of arrival, with a buffer of `buffer_s`.

    Playback never starts later than the arrival of the last piece. Raises ValueError if there are
    no pieces.
    """
    if not pieces:
        raise ValueError("nothing to play")
    first_s = pieces[0].at_s
    buffer = JitterBuffer(max(0.0, min(buffer_s, pieces[-1].at_s - first_s)))
    for piece in pieces:
        buffer.push(piece.audio_s, piece.at_s)
    assert buffer.empty_at_s is not None
    started_s = first_s + buffer.delay_s
    return Listening(started_s, buffer.empty_at_s, buffer.num_underruns, buffer.silent_s)
