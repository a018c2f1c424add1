"""Cuts a text that is still being written into the pieces that are spoken one by one.

The pieces tile the text: nothing is lost or repeated, and they are the same however the text was
cut up on its way here. That holds because each cut depends only on what has been read up to
`_Limits.max_chars` after the piece's start, and is made only when no later text could change it.
The first piece is short, so that sound starts early; later ones are about a sentence. What has
nothing to speak is joined to the piece after it. What is cut is the cleaned text; where a piece
begins and ends is said in the source's code points.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.breaks import Break, Kind, find_breaks
from stages.text.clean import audible, speakable
from stages.text.traced import Traced

if TYPE_CHECKING:
    from stages.text.markup import Cleaner, Verbatim

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

    `spoken` is empty where there is nothing to speak. The last piece of a text has no pause.
    """

    start: int
    end: int
    spoken: Traced
    pause_s: float

    @property
    def text(self) -> str:
        """What is spoken, in one line."""
        return self.spoken.text


@dataclass(frozen=True, slots=True)
class _Limits:
    """A clause ends a piece from `min_clause_chars` on; nothing is longer than `max_chars`."""

    min_clause_chars: int
    max_chars: int


_FIRST = _Limits(min_clause_chars=15, max_chars=60)
_LATER = _Limits(min_clause_chars=80, max_chars=180)


class Splitter:
    """Takes one text in parts by `feed`, then `finish` once; each returns the pieces now complete."""

    def __init__(
        self, cleaner: Cleaner | Verbatim, sentence_pause_s: float = SENTENCE_PAUSE_S
    ) -> None:
        self._cleaner = cleaner
        self._sentence_pause_s = sentence_pause_s
        self._rest = Traced()
        self._start = 0
        self._limits = _FIRST

    def feed(self, text: str) -> list[Piece]:
        """The pieces that `text` completes. A piece waits for the character after it."""
        return self._cut_off(self._cleaner.feed(text))

    def finish(self) -> list[Piece]:
        """What is left; the last piece ends where the text does. Nothing if the text is empty."""
        pieces = self._cut_off(self._cleaner.finish())
        end = self._cleaner.num_read
        if self._rest.text:
            rest, self._rest = self._rest, Traced()
            pieces.append(self._piece(rest, end, 0.0))
        elif self._start < end:
            pieces.append(self._piece(Traced(), end, 0.0))
        return pieces

    def _cut_off(self, text: Traced) -> list[Piece]:
        rest = Traced.joined([self._rest, text])
        pieces, taken = [], 0
        while cut := _cut(rest.text[taken : taken + self._limits.max_chars + 1], self._limits):
            length, at_sentence = cut
            part = rest.cut(taken, taken + length)
            pause_s = self._sentence_pause_s if at_sentence else CLAUSE_PAUSE_S
            pieces.append(self._piece(part, part.ends[-1], pause_s))
            taken += length
        self._rest = rest.cut(taken)
        return pieces

    def _piece(self, part: Traced, end: int, pause_s: float) -> Piece:
        start, self._start = self._start, end
        if not speakable(part.text):
            return Piece(start, end, Traced(), 0.0)
        self._limits = _LATER
        return Piece(start, end, audible(part), pause_s)


def _cut(window: str, limits: _Limits) -> tuple[int, bool] | None:
    """Length of the piece that `window` begins with, and whether a sentence ends there; None until
    more is read.

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
            return end, True
        if end >= limits.min_clause_chars:
            return end, False
        clause = end
    if not full:
        return None
    if clause >= limits.min_clause_chars // 2:
        return clause, False
    return _word_end(window, limits.max_chars), False


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
