"""Memory: what the C library does when it is freed, and what the kernel does while it is used."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MADV_COLLAPSE = 25
_PAGE = 4096
_LARGE_PAGE = 2 << 20
_PRESENT = np.uint64(1 << 63)
PAGEMAP = Path("/proc/self/pagemap")


def keep_freed_memory() -> None:
    """Let glibc keep the memory of freed tensors for the next ones.

    By default it returns large blocks to the kernel, which then clears every page of the next
    block. That took a quarter of the time of a decode
    (docs/decisions/0064-freed-memory-is-kept.md). Does nothing with another C library.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 32 << 20)  # the most that glibc accepts
        mallopt(_M_TRIM_THRESHOLD, 256 << 20)


def give_back_freed_memory() -> None:
    """Return all free memory of the process to the kernel, once: what loading and warming left."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


def use_large_pages() -> None:
    """Move what is in memory now, above all weights, into pages of 2 MB.

    The processor looks up the address of a large page sooner, which saves 4 to 6% of the time of
    speech (docs/decisions/0099-large-pages-for-weights.md). A range becomes a large page only if
    all of it is in use, so that the process does not grow. Does nothing if the kernel cannot do it:
    Linux before 6.1, or a kernel without large pages or without /proc/self/pagemap.
    """
    if sys.platform != "linux" or not PAGEMAP.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    for begin, end in _anonymous_ranges():
        for address in _full_pages(begin, end):
            madvise(ctypes.c_void_p(address), ctypes.c_size_t(_LARGE_PAGE), _MADV_COLLAPSE)


def _anonymous_ranges() -> list[tuple[int, int]]:
    """The private memory of this process that belongs to no file, cut to whole large pages."""
    ranges = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        addresses, rights, _, _, inode, *_ = line.split()
        begin, end = (int(address, 16) for address in addresses.split("-"))
        begin, end = -(-begin // _LARGE_PAGE) * _LARGE_PAGE, end // _LARGE_PAGE * _LARGE_PAGE
        if rights == "rw-p" and inode == "0" and begin < end:
            ranges.append((begin, end))
    return ranges


def _full_pages(begin: int, end: int) -> list[int]:
    """The addresses of the large pages in a range of which every small page is in memory."""
    with PAGEMAP.open("rb") as pagemap:
        pagemap.seek(begin // _PAGE * 8)
        entries = np.frombuffer(pagemap.read((end - begin) // _PAGE * 8), np.uint64)
    pages = (entries & _PRESENT).reshape(-1, _LARGE_PAGE // _PAGE)
    return [begin + int(number) * _LARGE_PAGE for number in np.flatnonzero(pages.all(axis=1))]
