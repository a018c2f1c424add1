"""What the C library does with freed memory."""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> None:
    """Keep what large tensors leave for the next ones. As it is set up, glibc gives blocks of that
    size back to the kernel, which clears every page of the next one: a quarter of the time of a
    decode (docs/log.md). Does nothing with another C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)


def give_back_freed_memory() -> None:
    """Return to the kernel what is free now, of all threads: what loading and warming left."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
