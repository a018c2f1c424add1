"""An encoder beside the event loop: what is heavy runs in a thread, the rest at once.

A piece of 100 ms takes a codec 0.3 to 1.5 ms, and opening one up to 10 ms; the libraries let the
other threads run meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.encoding.formats import Encoder, FileFormat

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")


class ThreadedEncoder:
    """A file that is being made. One call at a time, as in Encoder.

    Nothing is set up before the first samples: an encoder may hold megabytes, and the request may
    have to wait. Each call raises what the set-up raises.
    """

    def __init__(self, file_format: FileFormat) -> None:
        self._format = file_format
        self._encoder: Encoder | None = None
        self._head = b""

    async def feed(self, samples: bytes) -> bytes:
        """Take samples; the bytes that are ready, at first behind what stands before samples."""
        encoder = self._encoder or await self._begin()
        return self._headed(await self._run(encoder.feed, samples))

    async def flush(self) -> bytes:
        """The rest of the file."""
        encoder = self._encoder or await self._begin()
        return self._headed(await self._run(encoder.flush))

    def close(self) -> None:
        """Free what is held."""
        if self._encoder is not None:
            self._encoder.close()

    async def _begin(self) -> Encoder:
        self._encoder = await self._run(self._format.open)
        self._head = self._encoder.head()
        return self._encoder

    def _headed(self, coded: bytes) -> bytes:
        head, self._head = self._head, b""
        return head + coded

    async def _run(self, work: Callable[[*ArgsT], ResultT], *args: *ArgsT) -> ResultT:
        """A thread that has begun is waited for, also when the caller is cancelled."""
        return (
            await anyio.to_thread.run_sync(work, *args) if self._format.in_thread else work(*args)
        )
