"""A text that knows which part of its source each of its code points stands for.

Cleaning and writing out change a text step by step; what is left can still say where it came from,
for captions and for offsets in errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Traced:
    """Code point k of `text` stands for `starts[k]` to `ends[k]` of the source."""

    text: str = ""
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str, at: int = 0) -> Traced:
        """A text as it stands in its source, from `at` on."""
        end = at + len(text)
        return cls(text, tuple(range(at, end)), tuple(range(at + 1, end + 1)))

    @classmethod
    def instead(cls, text: str, start: int, end: int) -> Traced:
        """A text in the place of `start` to `end` of the source."""
        return cls(text, (start,) * len(text), (end,) * len(text))

    @classmethod
    def joined(cls, parts: list[Traced]) -> Traced:
        """All parts, one after the other."""
        return cls(
            "".join(part.text for part in parts),
            tuple(chain.from_iterable([part.starts for part in parts])),
            tuple(chain.from_iterable([part.ends for part in parts])),
        )

    def cut(self, begin: int, end: int | None = None) -> Traced:
        """The code points `begin` to `end`."""
        return Traced(self.text[begin:end], self.starts[begin:end], self.ends[begin:end])

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """What the code points `begin` to `end`, at least one, stand for."""
        return self.starts[begin], self.ends[end - 1]

    def sub(self, pattern: re.Pattern[str], said: Callable[[re.Match[str]], str | None]) -> Traced:
        """`pattern.sub`, traced. What is replaced is the group `it` where the pattern has one, else
        the whole match; a replacement of None leaves it as it is."""
        group = "it" if "it" in pattern.groupindex else 0
        parts, at = [], 0
        for match in pattern.finditer(self.text):
            begin, end = match.span(group)
            replacement = said(match)
            if replacement is None or begin == end:
                continue
            parts += [self.cut(at, begin), Traced.instead(replacement, *self.span(begin, end))]
            at = end
        return Traced.joined([*parts, self.cut(at)]) if parts else self
