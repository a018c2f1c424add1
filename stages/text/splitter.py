"""Cuts a text that is still being written into pieces, which are spoken one by one.

- The pieces tile the text: nothing is lost or repeated.
- They do not depend on how the text was divided between calls of `feed`. Each cut depends only on
  the text up to `_Limits.max_chars` after the start of the piece, and is made only when no later
  text could change it.
- The first piece is short, so that sound starts early. Later pieces are about a sentence long.
- Text without anything to speak is joined to the next piece.

Cuts are found in the cleaned text. The start and end of a piece are offsets in the source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.breaks import Break, Kind, find_breaks
from stages.text.clean import clean_characters, speakable
from stages.text.traced import Traced

if TYPE_CHECKING:
    from stages.text.markup import Cleaner, Verbatim

SENTENCE_PAUSE_S = 0.2  # the pause of Piper's own program after each sentence
CLAUSE_PAUSE_S = 0.0  # between two pieces there is about 0.2 s of silence already

# In a long phrase without marks, a pause sounds least odd before one of these words.
_JOINT = re.compile(
    r"\s(?=(?:and|but|or|nor|so|because|while|when|where|if|that|which|who|as|than|then"
    r"|with|without|for|from|in|into|on|at|to|of|by|after|before)\s)"
)


@dataclass(frozen=True, slots=True)
class Piece:
    """The source from `start` to `end`, the text that is spoken for it, and the pause after it.

    `spoken` is empty if there is nothing to speak. The last piece of a text has no pause.
    """

    start: int
    end: int
    spoken: Traced
    pause_s: float

    @property
    def text(self) -> str:
        """The spoken text, in one line."""
        return self.spoken.text


@dataclass(frozen=True, slots=True)
class _Limits:
    """A clause ends a piece of at least `min_clause_chars`. No piece is longer than `max_chars`."""

    min_clause_chars: int
    max_chars: int


_FIRST = _Limits(min_clause_chars=15, max_chars=60)
_LATER = _Limits(min_clause_chars=80, max_chars=180)


class Splitter:
    """Splits one text. Call `feed` for each part, then `finish` once.

    Both return the pieces that are complete now.
    """

    def __init__(
        self, cleaner: Cleaner | Verbatim, sentence_pause_s: float = SENTENCE_PAUSE_S
    ) -> None:
        self._cleaner = cleaner
        self._sentence_pause_s = sentence_pause_s
        self._rest = Traced()
        self._start = 0
        self._limits = _FIRST

    def feed(self, text: str) -> list[Piece]:
        """Add text. A piece is complete when the first character after it is known."""
        return self._take_pieces(self._cleaner.feed(text))

    def finish(self) -> list[Piece]:
        """Return the remaining pieces, which end where the text ends. Empty for an empty text."""
        pieces = self._take_pieces(self._cleaner.finish())
        end = self._cleaner.num_read
        if self._rest.text:
            rest, self._rest = self._rest, Traced()
            pieces.append(self._piece(rest, end, 0.0))
        elif self._start < end:
            pieces.append(self._piece(Traced(), end, 0.0))
        return pieces

    def _take_pieces(self, text: Traced) -> list[Piece]:
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
        return Piece(start, end, clean_characters(part), pause_s)


def _cut(window: str, limits: _Limits) -> tuple[int, bool] | None:
    """The length of the piece at the start of `window`, and whether a sentence ends there.

    None means that more text is needed. `window` is the text so far, cut after one character more
    than a piece may have.
    """
    full = len(window) > limits.max_chars
    clause = 0
    for found in find_breaks(window):
        if not full and found.end == len(window):
            return None  # the next character may still belong to the mark
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
    """Where to cut a full window between words.

    Text without words is cut shorter. It may be digits, which take long to say.
    """
    joints = [joint.end() for joint in _JOINT.finditer(window, max_chars // 2)]
    if joints:
        return joints[-1]
    if window[max_chars].isspace():
        return max_chars
    words = window[:max_chars].rpartition(" ")[0]
    return len(words) + 1 if speakable(words) else max_chars // 3
