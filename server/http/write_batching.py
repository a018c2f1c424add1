"""Collects the writes to a connection within one turn of the event loop into one system call.

A response writes its head, its events and its end one by one. Each write is a system call, in which
the stages' threads can take the interpreter lock. Here all data of a turn is written together at
its end, so nothing waits longer than that.
"""

from __future__ import annotations

import asyncio
from typing import Any


class WriteBatch:
    """The transports of one event loop that have data to send at the end of this turn."""

    def __init__(self) -> None:
        self._pending: list[BatchingTransport] = []

    def add(self, transport: BatchingTransport) -> None:
        """Flush `transport` at the end of this turn."""
        if not self._pending:
            asyncio.get_running_loop().call_soon(self._flush)
        self._pending.append(transport)

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
        for transport in pending:
            transport.flush()


class BatchingTransport(asyncio.Transport):
    """Wraps a transport and batches its writes. Has only the methods that uvicorn calls."""

    def __init__(self, transport: asyncio.Transport, batch: WriteBatch) -> None:
        super().__init__()
        self._transport = transport
        self._batch = batch
        self._unsent: list[bytes] = []

    def write(self, data: Any) -> None:
        """Send `data` at the end of this turn."""
        if not self._unsent:
            self._batch.add(self)
        self._unsent.append(data)

    def flush(self) -> None:
        """Send what was written, now."""
        unsent, self._unsent = self._unsent, []
        if unsent and not self._transport.is_closing():
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def close(self) -> None:
        """Flush, then close the connection."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close the connection at once. Unsent data is lost."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether the wrapped transport is closing or closed."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """Stop receiving data."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Receive data again."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """A property of the connection, such as `peername`."""
        return self._transport.get_extra_info(name, default)
