"""What was read of ended requests, so that a chat's next turn need not read the chat so far again.

Keys and values are copied out of an ended request's slot, and into that of one whose tokens begin
the same; nothing is shared, so no request can change another's. They depend on the tokens alone,
up to the rounding of other matrix shapes: a request writes what it would have written otherwise,
as it does in a crowd. The last used are kept, and in all no more than `max_tokens` tokens.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.kv_cache import KvCache, Slot

MIN_TOKENS = 64  # fewer are read within a step


class Prefixes:
    """Of one model, whose sequences lie in `cache`."""

    def __init__(self, cache: KvCache, max_tokens: int) -> None:
        self._cache = cache
        self._max_tokens = max_tokens
        self._kept: dict[tuple[int, ...], Tensor] = {}  # the last used is the last

    @property
    def num_tokens(self) -> int:
        """How many are kept."""
        return sum(map(len, self._kept))

    def begin(self, tokens: Sequence[int]) -> tuple[Slot | None, int]:
        """A slot that holds what is known of `tokens`, and how many of them these are.

        At least the last is left to be read, as what comes after it has to be computed.
        """
        kept = max(self._kept, key=lambda each: _num_common(each, tokens), default=())
        count = min(_num_common(kept, tokens), len(tokens) - 1)
        if count < MIN_TOKENS:
            return None, 0
        content = self._kept[kept] = self._kept.pop(kept)
        slot = self._cache.reserve(None, 0, len(tokens))
        self._cache.write(slot, content[:, :, :count])
        return slot, count

    def keep(self, tokens: Sequence[int], slot: Slot) -> None:
        """Copy what is known of `tokens`, all of which were read into `slot`."""
        new = tuple(tokens[: self._max_tokens])
        if len(new) < MIN_TOKENS or any(each[: len(new)] == new for each in self._kept):
            return
        for each in [each for each in self._kept if new[: len(each)] == each]:
            del self._kept[each]
        while self.num_tokens + len(new) > self._max_tokens:
            del self._kept[next(iter(self._kept))]
        self._kept[new] = self._cache.read(slot, len(new))


def _num_common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two sequences have in common at their beginnings."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
