"""The prefix cache: keys and values of ended requests, so that a chat's next turn reads less.

They are copied out of the slot of an ended request, and into the slot of a request that begins with
the same tokens. Nothing is shared, so no request can change the data of another. Keys and values
depend on the tokens only, up to the rounding of other matrix shapes. So a request writes the same
reply with and without the cache, just as it does alone and in a batch. The cache is an LRU cache of
at most `max_tokens` tokens.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.kv_cache import KvCache, Slot

MIN_TOKENS = 64  # reading fewer tokens takes only one step


class PrefixCache:
    """The prefix cache of one model, whose running sequences are in `cache`."""

    def __init__(self, cache: KvCache, max_tokens: int) -> None:
        self._cache = cache
        self._max_tokens = max_tokens
        self._kept: dict[tuple[int, ...], Tensor] = {}  # the least recently used first

    @property
    def num_tokens(self) -> int:
        """How many tokens are kept."""
        return sum(map(len, self._kept))

    def begin(self, tokens: Sequence[int]) -> tuple[Slot | None, int]:
        """A new slot with the longest kept prefix of `tokens`, and its length; (None, 0) if it is
        too short.

        The last token is never included: the model has to read it to predict the next one.
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
        """Keep a copy of the keys and values of `tokens`, all of which are in `slot`."""
        new = tuple(tokens[: self._max_tokens])
        if len(new) < MIN_TOKENS or any(each[: len(new)] == new for each in self._kept):
            return
        for each in [each for each in self._kept if new[: len(each)] == each]:
            del self._kept[each]
        while self.num_tokens + len(new) > self._max_tokens:
            del self._kept[next(iter(self._kept))]
        self._kept[new] = self._cache.read(slot, len(new))


def _num_common(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the longest common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
