"""A text that knows which part of its source each of its code points stands for.

Cleaning and normalisation change a text step by step. Captions and error messages still need
offsets into the source.
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
    """Code point k of `text` stands for the source from `starts[k]` to `ends[k]` (exclusive)."""

    text: str = ""
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str, at: int = 0) -> Traced:
        """A text that is unchanged and begins at offset `at` of the source."""
        end = at + len(text)
        return cls(text, tuple(range(at, end)), tuple(range(at + 1, end + 1)))

    @classmethod
    def instead(cls, text: str, start: int, end: int) -> Traced:
        """A text that replaces the source from `start` to `end`."""
        return cls(text, (start,) * len(text), (end,) * len(text))

    @classmethod
    def joined(cls, parts: list[Traced]) -> Traced:
        """Concatenate the parts."""
        return cls(
            "".join(part.text for part in parts),
            tuple(chain.from_iterable([part.starts for part in parts])),
            tuple(chain.from_iterable([part.ends for part in parts])),
        )

    def cut(self, begin: int, end: int | None = None) -> Traced:
        """The code points from `begin` to `end`, as in a slice."""
        return Traced(self.text[begin:end], self.starts[begin:end], self.ends[begin:end])

    def span(self, begin: int, end: int) -> tuple[int, int]:
        """The source span of the code points from `begin` to `end`, which are at least one."""
        return self.starts[begin], self.ends[end - 1]

    def sub(
        self, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str | None]
    ) -> Traced:
        """Replace all matches, like `pattern.sub`.

        If the pattern has a group `it`, only that group is replaced. A match stays as it is if
        `replace` returns None or the replaced part is empty.
        """
        group = "it" if "it" in pattern.groupindex else 0
        parts, at = [], 0
        for match in pattern.finditer(self.text):
            begin, end = match.span(group)
            replacement = replace(match)
            if replacement is None or begin == end:
                continue
            parts += [self.cut(at, begin), Traced.instead(replacement, *self.span(begin, end))]
            at = end
        return Traced.joined([*parts, self.cut(at)]) if parts else self
