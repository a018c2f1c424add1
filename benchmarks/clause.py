"""The first clause of a spoken chat, as the talker cuts it, and when its last token came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.markup import Cleaner
from stages.text.splitter import Splitter

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Clause:
    """`last_token_s` is the time of the piece of text that holds its last character."""

    text: str
    last_token_s: float


def first_clause(texts: Sequence[tuple[float, str]]) -> Clause | None:
    """From the pieces of text in order; None where there is nothing to speak."""
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
