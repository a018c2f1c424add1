"""An encoder beside the event loop: what is heavy runs in a thread, the rest at once.

A piece of 100 ms takes a codec 0.3 to 1.5 ms, and opening one up to 10 ms; the libraries let the
other threads run meanwhile.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from server.encoders import Encoder, FileFormat

ResultT = TypeVar("ResultT")
ArgsT = TypeVarTuple("ArgsT")


class OpenFile:
    """A file that is being made. One call at a time, as in Encoder."""

    def __init__(self, encoder: Encoder, *, heavy: bool) -> None:
        self._encoder = encoder
        self._heavy = heavy

    def head(self) -> bytes:
        """What stands before the first samples."""
        return self._encoder.head()

    async def feed(self, samples: bytes) -> bytes:
        """Take samples; the bytes that are ready."""
        return await _run(self._heavy, self._encoder.feed, samples)

    async def flush(self) -> bytes:
        """The rest of the file."""
        return await _run(self._heavy, self._encoder.flush)


@asynccontextmanager
async def open_file(form: FileFormat) -> AsyncIterator[OpenFile]:
    """Set an encoder up, and free it at the end of the scope. Raises what the set-up raises."""
    encoder = await _run(form.heavy, form.open)
    try:
        yield OpenFile(encoder, heavy=form.heavy)
    finally:
        encoder.close()


def _run(heavy: bool, work: Callable[[*ArgsT], ResultT], *args: *ArgsT) -> Awaitable[ResultT]:
    """A thread that has begun is waited for, also when the caller is cancelled."""
    return anyio.to_thread.run_sync(work, *args) if heavy else _here(work, *args)


async def _here(work: Callable[[*ArgsT], ResultT], *args: *ArgsT) -> ResultT:
    return work(*args)
