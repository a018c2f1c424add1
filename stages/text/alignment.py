"""Which sounds belong to which word, where a phonemizer joins words ("on the") or parts them.

The sentence's sounds come in groups between spaces. Where there are as many groups as words, they
are paired; else words and groups are matched by how long each word sounds alone (as sentences are
in Gale and Church 1993).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# How many words become how many groups, and what that costs beside the difference in length.
_BLOCKS = {
    (1, 1): 0.0,
    (2, 1): 1.0,
    (3, 1): 2.0,
    (1, 2): 1.0,
    (1, 3): 2.0,
    (1, 4): 3.0,
    (1, 0): 2.0,
    (0, 1): 2.0,
}


def word_spans(
    words: Sequence[str], groups: Sequence[str], alone: Callable[[str], str]
) -> list[tuple[int, int]]:
    """Where in `" ".join(groups)` each word sounds; `alone` gives a word's sounds by itself."""
    begins = [0]
    for group in groups:
        begins.append(begins[-1] + len(group) + 1)
    spans = [(begins[at], begins[at + 1] - 1) for at in range(len(groups))]
    if len(words) == len(groups):
        return spans
    lengths = [len(alone(word).replace(" ", "")) or 1 for word in words]
    out: list[tuple[int, int]] = []
    at = 0
    for num_words, num_groups in _matched(lengths, [len(group) for group in groups]):
        taken, at = spans[at : at + num_groups], at + num_groups
        if not taken:
            here = spans[at - 1][1] if at else 0
            out += [(here, here)] * num_words
        elif num_words:
            shares = lengths[len(out) : len(out) + num_words]
            out += _shared(taken[0][0], taken[-1][1], shares)
    return out


def _shared(begin: int, end: int, shares: list[int]) -> list[tuple[int, int]]:
    """`begin` to `end` in parts that are as long, to each other, as `shares`."""
    edges = [
        begin + round((end - begin) * sum(shares[:number]) / sum(shares))
        for number in range(len(shares) + 1)
    ]
    return list(itertools.pairwise(edges))


def _matched(words: list[int], groups: list[int]) -> list[tuple[int, int]]:
    """The cheapest row of blocks that takes all words and all groups, by their lengths."""
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(words) + 1):
        for j in range(len(groups) + 1):
            options = []
            for (di, dj), price in _BLOCKS.items():
                before = best.get((i - di, j - dj))
                if before is not None:
                    apart = abs(sum(words[i - di : i]) - sum(groups[j - dj : j]))
                    options.append((before[0] + price + apart, (di, dj)))
            if options:
                best[i, j] = min(options)
    blocks = []
    i, j = len(words), len(groups)
    while (i, j) != (0, 0):
        block = best[i, j][1]
        blocks.append(block)
        i, j = i - block[0], j - block[1]
    return blocks[::-1]
