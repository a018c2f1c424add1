"""Finds the first clause of a spoken chat, split as the talker does, and when it was complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.markup import Cleaner
from stages.text.splitter import Splitter

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause. `last_token_s` is when the text with its last character arrived."""

    text: str
    last_token_s: float


def first_clause(texts: Sequence[tuple[float, str]]) -> Clause | None:
    """The first clause of texts with their arrival times. None if there is nothing to speak."""
    splitter = Splitter(Cleaner(""))
    pieces = [piece for _, text in texts for piece in splitter.feed(text)] + splitter.finish()
    first = next((piece for piece in pieces if piece.text), None)
    if first is None:
        return None
    whole = "".join(text for _, text in texts)[: first.end].rstrip()
    length = 0
    for at_s, text in texts:
        length += len(text)
        if length >= len(whole):
            return Clause(whole.strip(), at_s)
    return None
