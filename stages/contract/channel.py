"""A queue inside one event loop, for one reader: putting never waits, and an end is an error.

Unbounded on purpose: what goes through it is bounded by credit (data) or by the number of live
requests (control). anyio's memory streams were tried here; they suspend twice per item and must be
closed at both ends on every path.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """First in, first out. All methods belong to the event loop's thread."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    def put(self, item: T) -> None:
        """Append; after `end` the item is dropped."""
        if self._error is None:
            self._items.append(item)
            self._wake()

    def end(self, error: Exception) -> None:
        """Nothing more comes: once what is there is taken, `get` raises `error`."""
        self._error = self._error or error
        self._wake()

    async def get(self) -> T:
        """The next item; waits for one. Only one task may wait."""
        while not self._items:
            if self._error is not None:
                raise self._error
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self._items.popleft()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
