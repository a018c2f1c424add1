"""A queue inside one event loop, with one reader. `put` never waits; `close` hands over an error.

The queue has no limit of its own. Credit bounds the data that goes through it, and the number of
live requests bounds the control messages. anyio's memory streams suspend twice per item and must be
closed at both ends on every path, so they are not used here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """First in, first out. Call every method from the event loop's thread."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    def put(self, item: T) -> None:
        """Append an item and wake the reader. After `close` the item is dropped."""
        if self._error is None:
            self._items.append(item)
            self._wake()

    def close(self, error: Exception) -> None:
        """Accept no more items. Once the queue is empty, `get` raises `error` (the first one)."""
        self._error = self._error or error
        self._wake()

    async def get(self) -> T:
        """Return the next item, waiting for one if necessary. Only one task may wait at a time.

        Raises the error given to `close` when the channel is closed and empty.
        """
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
