"""A rule: what it finds, and what is said in its place. And the shapes that many rules share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Digits with or without commas between thousands, and perhaps decimals. Nothing begins within a
# number: tried from each of its digits, a pattern would take quadratic time over a long one.
NUMBER = r"(?<!\d)(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
DASH = r"\s?[-\u2013\u2014]\s?"


@dataclass(frozen=True, slots=True)
class Rule:
    """`said` may return None to leave a match alone. A group `it` is the part that is replaced."""

    pattern: re.Pattern[str]
    said: Callable[[re.Match[str]], str | None]


def rule(
    pattern: str, said: str | Callable[[re.Match[str]], str | None], *, ignore_case: bool = False
) -> Rule:
    """A rule; a `said` that is text is always the same."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    return Rule(compiled, (lambda _: said) if isinstance(said, str) else said)


def one_of(words: Iterable[str]) -> str:
    """A group of alternatives, the longest first."""
    ordered = sorted(words, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, ordered))})"
