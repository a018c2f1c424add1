"""Memory that is wholly in use moves into large pages, and no other memory does."""

import ctypes
import mmap
import platform
import sys
from pathlib import Path

import pytest

from stages.runtime import allocator
from stages.runtime.allocator import use_large_pages

MB = 1 << 20


def kernel():
    return tuple(int(part) for part in platform.release().split(".")[:2])


def kilobytes(address, kind):
    """The value of `kind` in `smaps`, for the mapping that holds the address."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split()
        if "-" in head and not head.endswith(":"):
            begin, end = (int(part, 16) for part in head.split("-"))
            inside = begin <= address < end
        elif inside and head == f"{kind}:":
            return int(rest[0])
    raise AssertionError(f"no {kind} at {address:x}")


@pytest.mark.skipif(
    sys.platform != "linux"
    or kernel() < (6, 1)
    or not Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="needs MADV_COLLAPSE",
)
def test_only_memory_that_is_wholly_in_use_moves_into_large_pages():
    with mmap.mmap(-1, 32 * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)  # until it is filled
        used = bytes(range(256)) * (8 * MB // 256)
        memory[: len(used)] = used
        for begin in range(16 * MB, 32 * MB, MB):
            memory[begin] = 1
        memory.madvise(mmap.MADV_HUGEPAGE)
        view = ctypes.c_char.from_buffer(memory)
        address = ctypes.addressof(view)
        del view  # otherwise a failed assertion is hidden by the error of closing a mapping in use
        in_use = kilobytes(address, "Rss")
        for _ in range(9):  # the kernel may be busy with one of the pages just now
            use_large_pages()
            if kilobytes(address, "AnonHugePages") >= 6 * 1024:  # it may also come first by itself
                break
        assert memory[: len(used)] == used
        assert kilobytes(address, "AnonHugePages") >= 6 * 1024
        assert kilobytes(address, "Rss") - in_use < 2 * 1024


def test_without_a_pagemap_nothing_happens(monkeypatch, tmp_path):
    monkeypatch.setattr(allocator, "PAGEMAP", tmp_path / "pagemap")
    use_large_pages()
