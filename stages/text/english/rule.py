"""A normalisation rule: a pattern and its replacement. Also the patterns that many rules share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Digits, optionally with commas between thousands, and optionally with decimals. A match never
# begins inside a number: trying a pattern at each digit takes quadratic time in long numbers.
NUMBER = r"(?<!\d)(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
DASH = r"\s?[-\u2013\u2014]\s?"


@dataclass(frozen=True, slots=True)
class Rule:
    """Replaces each match of `pattern`, or its group `it`, by the result of `replace`.

    If `replace` returns None, the match stays as it is.
    """

    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str | None]


def rule(
    pattern: str, replace: str | Callable[[re.Match[str]], str | None], *, ignore_case: bool = False
) -> Rule:
    """Make a rule. `replace` is a function, or one text for all matches."""
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    return Rule(compiled, (lambda _: replace) if isinstance(replace, str) else replace)


def one_of(words: Iterable[str]) -> str:
    """A pattern that matches any of the words. Longer words are tried first."""
    ordered = sorted(words, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, ordered))})"
