"""Finds which phonemes belong to which word.

A phonemizer may join words ("on the") or split one. The phonemes of a sentence come in groups
between spaces. If there are as many groups as words, each word gets one group. Otherwise dynamic
programming aligns words and groups by length, where the length of a word is the number of its
phonemes when it is spoken alone. Gale and Church (1993) align sentences in the same way.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Number of words and number of groups in a block, and its cost beside the difference in length.
_BLOCK_COSTS = {
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
    words: Sequence[str], groups: Sequence[str], phonemize: Callable[[str], str]
) -> list[tuple[int, int]]:
    """Start and end of each word in `" ".join(groups)`, in the order of the words.

    `phonemize` returns the phonemes of a single word. The span of a word without phonemes is empty.
    """
    begins = [0]
    for group in groups:
        begins.append(begins[-1] + len(group) + 1)
    spans = [(begins[at], begins[at + 1] - 1) for at in range(len(groups))]
    if len(words) == len(groups):
        return spans
    lengths = [len(phonemize(word).replace(" ", "")) or 1 for word in words]
    out: list[tuple[int, int]] = []
    at = 0
    for num_words, num_groups in _align(lengths, [len(group) for group in groups]):
        taken, at = spans[at : at + num_groups], at + num_groups
        if not taken:
            here = spans[at - 1][1] if at else 0
            out += [(here, here)] * num_words
        elif num_words:
            out += _divide(taken[0][0], taken[-1][1], lengths[len(out) : len(out) + num_words])
    return out


def _divide(begin: int, end: int, weights: list[int]) -> list[tuple[int, int]]:
    """Divide the span from `begin` to `end` in proportion to `weights`."""
    edges = [
        begin + round((end - begin) * sum(weights[:number]) / sum(weights))
        for number in range(len(weights) + 1)
    ]
    return list(itertools.pairwise(edges))


def _align(words: list[int], groups: list[int]) -> list[tuple[int, int]]:
    """The cheapest sequence of blocks that covers all words and all groups, given their lengths."""
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0.0, (0, 0))}
    for i in range(len(words) + 1):
        for j in range(len(groups) + 1):
            options = []
            for (di, dj), cost in _BLOCK_COSTS.items():
                before = best.get((i - di, j - dj))
                if before is not None:
                    difference = abs(sum(words[i - di : i]) - sum(groups[j - dj : j]))
                    options.append((before[0] + cost + difference, (di, dj)))
            if options:
                best[i, j] = min(options)
    blocks = []
    i, j = len(words), len(groups)
    while (i, j) != (0, 0):
        block = best[i, j][1]
        blocks.append(block)
        i, j = i - block[0], j - block[1]
    return blocks[::-1]
