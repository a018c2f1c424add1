"""Cuts a text that is still being written into the pieces that are spoken one by one.

The pieces tile the text: nothing is lost or repeated, and they are the same however the text was
cut up on its way here. That holds because each cut depends only on what has been read up to
`_Limits.max_chars` after the piece's start, and is made only when no later text could change it.
The first piece is short, so that sound starts early; later ones are about a sentence. What has
nothing to speak is joined to the piece after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stages.talker.text.breaks import Break, Kind, find_breaks
from stages.talker.text.clean import speakable, spoken

SENTENCE_PAUSE_S = 0.2  # what Piper's own program puts after each sentence
CLAUSE_PAUSE_S = 0.0  # the end and start of two pieces are about 0.2 s of silence already

# Where nothing else divides a long phrase, a pause is least odd before one of these.
_JOINT = re.compile(
    r"\s(?=(?:and|but|or|nor|so|because|while|when|where|if|that|which|who|as|than|then"
    r"|with|without|for|from|in|into|on|at|to|of|by|after|before)\s)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Code points `start` to `end` of the source, what is spoken for them, and the silence after.

    `text` is "" where there is nothing to speak. The last piece of a text has no pause.
    """

    start: int
    end: int
    text: str
    pause_s: float


@dataclass(frozen=True, slots=True)
class _Limits:
    """A clause ends a piece from `min_clause_chars` on; nothing is longer than `max_chars`."""

    min_clause_chars: int
    max_chars: int


_FIRST = _Limits(min_clause_chars=15, max_chars=60)
_LATER = _Limits(min_clause_chars=80, max_chars=180)


class Splitter:
    """Takes one text in parts by `feed`, then `end` once; each returns the pieces now complete."""

    def __init__(self) -> None:
        self._rest = ""
        self._start = 0
        self._limits = _FIRST

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text` completes. A piece waits for the character after it."""
        self._rest += text
        pieces, taken = [], 0
        while cut := _cut(self._rest[taken : taken + self._limits.max_chars + 1], self._limits):
            length, pause_s = cut
            pieces.append(self._piece(self._rest[taken : taken + length], pause_s))
            taken += length
        self._rest = self._rest[taken:]
        return pieces

    def end(self) -> list[Piece]:
        """What is left, as the last piece; nothing if the text is empty."""
        rest, self._rest = self._rest, ""
        return [self._piece(rest, 0.0)] if rest else []

    def _piece(self, source: str, pause_s: float) -> Piece:
        start, self._start = self._start, self._start + len(source)
        if not speakable(source):
            return Piece(start, self._start, "", 0.0)
        self._limits = _LATER
        return Piece(start, self._start, spoken(source), pause_s)


def _cut(window: str, limits: _Limits) -> tuple[int, float] | None:
    """Length and pause of the piece that `window` begins with, or None until more is read.

    `window` is what is read so far, at most one character more than a piece may have.
    """
    full = len(window) > limits.max_chars
    clause = 0
    for found in find_breaks(window):
        if not full and found.end == len(window):
            return None  # what comes next may still belong to the mark
        if found.kind is Kind.WITHIN or not _usable(found, window, limits):
            continue
        end = min(found.end, limits.max_chars)
        if found.kind is Kind.SENTENCE:
            return end, SENTENCE_PAUSE_S
        if end >= limits.min_clause_chars:
            return end, CLAUSE_PAUSE_S
        clause = end
    if not full:
        return None
    if clause >= limits.min_clause_chars // 2:
        return clause, CLAUSE_PAUSE_S
    return _word_end(window, limits.max_chars), 0.0


def _usable(found: Break, window: str, limits: _Limits) -> bool:
    return found.mark_end <= limits.max_chars and speakable(window[: found.start])


def _word_end(window: str, max_chars: int) -> int:
    """Where to cut a full window between words; what has no words is cut shorter, for
    it may be digits, which take long to say."""
    joints = [joint.end() for joint in _JOINT.finditer(window, max_chars // 2)]
    if joints:
        return joints[-1]
    if window[max_chars].isspace():
        return max_chars
    words = window[:max_chars].rpartition(" ")[0]
    return len(words) + 1 if speakable(words) else max_chars // 3
