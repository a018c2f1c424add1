"""What is written to a connection in one turn of the event loop leaves in one piece.

A response writes its head, its events and its end one by one. Each write is a system call that lets
the stages' threads take the interpreter; all that is ready is written at once instead, and nothing
waits longer than the turn.
"""

from __future__ import annotations

import asyncio
from typing import Any


class WriteBatch:
    """The connections of one loop that wrote something in this turn."""

    def __init__(self) -> None:
        self._written: list[BatchingTransport] = []

    def note(self, transport: BatchingTransport) -> None:
        """Flush it at the end of the turn, with all others."""
        if not self._written:
            asyncio.get_running_loop().call_soon(self._flush)
        self._written.append(transport)

    def _flush(self) -> None:
        written, self._written = self._written, []
        for transport in written:
            transport.flush()


class BatchingTransport(asyncio.Transport):
    """A transport over another one; see above. Only what uvicorn asks of it."""

    def __init__(self, transport: asyncio.Transport, turn: WriteBatch) -> None:
        super().__init__()
        self._transport = transport
        self._turn = turn
        self._unsent: list[bytes] = []

    def write(self, data: Any) -> None:
        """Send at the end of the turn."""
        if not self._unsent:
            self._turn.note(self)
        self._unsent.append(data)

    def flush(self) -> None:
        """Send now what was written."""
        unsent, self._unsent = self._unsent, []
        if unsent and not self._transport.is_closing():
            self._transport.write(unsent[0] if len(unsent) == 1 else b"".join(unsent))

    def close(self) -> None:
        """See the base."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """See the base."""
        self._transport.abort()

    def is_closing(self) -> bool:
        """See the base."""
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        """See the base."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """See the base."""
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See the base."""
        return self._transport.get_extra_info(name, default)
