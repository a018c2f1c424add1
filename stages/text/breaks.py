"""Finds where a text may be cut: after a sentence, a line, or a clause.

Not every dot ends a sentence. It does not after a title ("Dr."), an initial ("J."), a month, or the
number of a list item. After "p.m." or "etc." it does only before a capital letter. These rules are
English. In other languages a missed sentence end only makes a longer piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from stages.text.english.abbreviations import (
    CLOSING_WORDS,
    COUNTERS,
    INNER_WORDS,
    SHORT_MONTHS,
    STREETS,
    TITLES,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def _lower(*tables: Iterable[str]) -> frozenset[str]:
    return frozenset(word.lower() for table in tables for word in table)


_NEVER_END = _lower(
    TITLES, INNER_WORDS, (short for short, month in SHORT_MONTHS.items() if short != month)
)
_BEFORE_NUMBER = _lower(COUNTERS, ["ext"])
_MAY_END = _lower(CLOSING_WORDS, STREETS)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_LAST_WORD = re.compile(r"[^\s(\[{\"'\u201c\u2018]*$")

# Punctuation marks of other scripts, and the same marks in Latin script.
_LATIN = {
    "\u061f": "?",
    "\u06d4": ".",
    "\u0964": ".",
    "\u060c": ",",
    "\u061b": ";",
    "\u3002": ".",
    "\uff01": "!",
    "\uff1f": "?",
    "\uff0c": ",",
    "\u3001": ",",
    "\uff1b": ";",
    "\uff1a": ":",
}
_CLOSING = r"""["'\u201d\u2019)\]}»*_]*"""
_BREAK = re.compile(
    rf"""(?P<mark> [.!?…\u061f\u06d4\u0964]+ | [,;:\u060c\u061b]+ ) {_CLOSING} (?:\s+|\Z)
      | (?P<wide> [\u3002\uff01\uff1f\uff0c\u3001\uff1b\uff1a]+ )
        [\u201d\u2019\uff09\u300d\u300f]* \s*
      | \s*\n\s*
      | \s* (?P<dash> —+ | (?<=\s)[-\u2013]+(?=\s) ) \s*""",
    re.VERBOSE,
)


class Kind(Enum):
    """What ends at a break. WITHIN is a mark that is spoken, but no place to cut ("29th, 2024")."""

    SENTENCE = "sentence"
    CLAUSE = "clause"
    WITHIN = "within"


@dataclass(frozen=True, slots=True)
class Break:
    """The end of a sentence, line or clause. Offsets are code points of the text.

    The words before the break end at `start`. The marks and closing quotes end at `mark_end`. The
    white space after them ends at `end`, where the next words begin. `mark` is the first mark, in
    Latin script; "" for the end of a line.
    """

    start: int
    mark_end: int
    end: int
    mark: str
    kind: Kind


def find_breaks(text: str) -> Iterator[Break]:
    """Find all breaks of `text` from left to right, without the dots that end nothing."""
    for match in _BREAK.finditer(text):
        start, end = match.span()
        written = match["mark"] or match["wide"] or match["dash"] or ""
        mark = _LATIN.get(written[:1], written[:1]) + written[1:]
        kind = _kind(text[:start], mark, match.group(), text[end : end + 1])
        if kind is not None:
            yield Break(start, start + len(match.group().rstrip()), end, mark[:1], kind)


def _kind(before: str, mark: str, matched: str, following: str) -> Kind | None:
    if "\n" in matched:
        return Kind.SENTENCE
    if mark[:1] in tuple(",;:"):
        return Kind.WITHIN if following.isdigit() else Kind.CLAUSE
    if mark[:1] not in tuple(".!?…"):
        return Kind.CLAUSE
    if mark == "." and not _dot_ends(before, following):
        return None
    return Kind.CLAUSE if following.islower() else Kind.SENTENCE


def _dot_ends(before: str, following: str) -> bool:
    """Whether a single dot after `before` ends a sentence; before a small letter, a clause."""
    found = _LAST_WORD.search(before)
    word = found.group() if found else ""
    lower = word.lower()
    if lower in _NEVER_END:
        return False
    if lower in _BEFORE_NUMBER and following.isdigit():
        return False
    if word.isdecimal() and not before[: -len(word)].rpartition("\n")[2].strip():
        return False
    if lower in _MAY_END:
        return not following.islower()
    if _DOTTED.fullmatch(word) and word != "I":
        return "." in word and word.islower() and not (following.islower() or following.isdigit())
    return True
