"""Evaluates the trace of one request. Times are in seconds from the start of the request."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.http_body import read_body
from benchmarks.sound import SAMPLE_BYTES, decode_body, first_audible
from server.observe.player import BUFFER_S, ReceivedAudio, listen

if TYPE_CHECKING:
    from benchmarks.http_client import Trace
    from benchmarks.sound import DecodedBody


@dataclass(slots=True)
class Outcome:
    """The outcome of one request. `good`: it is complete and has audio or text.

    `heard_s`: when a player that starts at the first audio plays the first sample above -40 dB.
    `dry` and `dry_buffered`: how often playback ran dry without a buffer, and with one of 100 ms.
    """

    began_s: float  # from the start of the run
    status: int = 0
    good: bool = False
    ended_s: float = 0.0
    first_audio_s: float | None = None
    heard_s: float | None = None
    audio_s: float = 0.0
    dry: int = 0
    dry_buffered: int = 0
    silent_s: float = 0.0
    gaps_s: list[float] = field(default_factory=list)
    texts: list[tuple[float, str]] = field(default_factory=list)
    num_tokens: int = 0

    @property
    def listened_s(self) -> float:
        """When the last sample was played, without a buffer."""
        return (self.first_audio_s or 0.0) + self.audio_s + self.silent_s


def outcome_of(trace: Trace, run_began_s: float, kind: str, rate_hz: int) -> Outcome:
    """Evaluate a trace."""
    body = read_body(trace)
    outcome = Outcome(trace.began_s - run_began_s, body.status)
    if trace.received:
        outcome.ended_s = trace.received[-1][0] - trace.began_s
    if body.status != 200:
        return outcome
    decoded = decode_body(body.pieces, kind, rate_hz)
    outcome.texts = [(at_s - trace.began_s, text) for at_s, text in decoded.texts]
    outcome.num_tokens = decoded.num_tokens or len(decoded.texts)
    if decoded.samples:
        _play(outcome, decoded, trace.began_s)
    outcome.good = body.complete and decoded.ended and bool(decoded.samples or decoded.texts)
    return outcome


def _play(outcome: Outcome, decoded: DecodedBody, began_s: float) -> None:
    bytes_per_s = decoded.rate_hz * SAMPLE_BYTES
    pieces = [
        ReceivedAudio(at_s - began_s, len(raw) / bytes_per_s) for at_s, raw in decoded.samples
    ]
    plain, buffered = listen(pieces), listen(pieces, BUFFER_S)
    outcome.first_audio_s = pieces[0].at_s
    outcome.audio_s = sum(piece.audio_s for piece in pieces)
    outcome.dry, outcome.silent_s = plain.num_underruns, plain.silent_s
    outcome.dry_buffered = buffered.num_underruns
    outcome.gaps_s = [after.at_s - before.at_s for before, after in pairwise(pieces)]
    audible = first_audible(decoded)
    if audible is not None:
        outcome.heard_s = _heard_at(pieces, audible / decoded.rate_hz)


def _heard_at(pieces: list[ReceivedAudio], offset_s: float) -> float:
    """When the sample at `offset_s` of the audio is played, without a buffer."""
    before: list[ReceivedAudio] = []
    lasts_s = 0.0
    for piece in pieces:
        before.append(piece)
        if lasts_s + piece.audio_s > offset_s:
            break
        lasts_s += piece.audio_s
    left_s = sum(piece.audio_s for piece in before) - offset_s
    return listen(before).ended_s - left_s
