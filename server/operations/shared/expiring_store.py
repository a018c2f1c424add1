"""Values that clients may refer to later by an id, kept in memory until they expire.

Memory is bounded: if there is too much, the oldest values are evicted. Ids are long and random, so
whoever knows one may use it. Must be used from the event loop only.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

ValueT = TypeVar("ValueT")

MAX_ITEMS = 4096
MAX_CHARS = 16 * 2**20


@dataclass(frozen=True, slots=True)
class _Item(Generic[ValueT]):
    value: ValueT
    num_chars: int
    expires_at: float


class ExpiringStore(Generic[ValueT]):
    """Values by id, at most `max_items` with `max_chars` characters in all. `now`: Unix seconds."""

    def __init__(
        self,
        max_items: int = MAX_ITEMS,
        max_chars: int = MAX_CHARS,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._max_items = max_items
        self._max_chars = max_chars
        self._now = now
        self._items: OrderedDict[str, _Item[ValueT]] = OrderedDict()
        self._num_chars = 0

    def put(self, item_id: str, value: ValueT, num_chars: int, expires_at: float) -> None:
        """Keep a value of about `num_chars` characters of text. `item_id` must be new."""
        self._items[item_id] = _Item(value, num_chars, expires_at)
        self._num_chars += num_chars
        while len(self._items) > self._max_items or self._num_chars > self._max_chars:
            _, oldest = self._items.popitem(last=False)
            self._num_chars -= oldest.num_chars

    def get(self, item_id: str) -> ValueT | None:
        """The value; None if there is none, or if it has expired."""
        item = self._items.get(item_id)
        if item is None:
            return None
        if self._now() >= item.expires_at:
            self.drop(item_id)
            return None
        return item.value

    def drop(self, item_id: str) -> bool:
        """Delete a value. Returns whether there was one."""
        item = self._items.pop(item_id, None)
        if item is not None:
            self._num_chars -= item.num_chars
        return item is not None
