"""A bounded ring of byte records between two processes: one writes, one reads, neither waits.

It lies in an anonymous memory file (memfd). That has no name, so a killed server leaves nothing
behind, and it does not count against the /dev/shm of a container. Each position is moved by one
side only. It moves after the data is copied and a system call has passed in between (`_fence`), so
that no processor shows the position before the data. An eventfd wakes the reader.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import reduction
from typing import TYPE_CHECKING, Any

from stages.runtime.connectors.frames import SIZE, take_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _typeshed import ReadableBuffer

_HEAD, _TAIL, _FULL, _DATA = 0, 8, 16, 24  # offsets in the file; the first three are uint64
_U64 = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class RingFiles:
    """The descriptors of a ring. Can be sent to a process that is being started."""

    memory_fd: int
    wakeup_fd: int
    capacity: int

    @classmethod
    def create(cls, name: str, capacity: int) -> RingFiles:
        """New files. `capacity` in bytes also bounds one record."""
        memory_fd = os.memfd_create(f"nano-omni:{name}", os.MFD_CLOEXEC)
        os.ftruncate(memory_fd, _DATA + capacity)
        wakeup_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return cls(memory_fd, wakeup_fd, capacity)

    def close(self) -> None:
        """Close this process's descriptors. The memory is freed with the last one that maps it."""
        os.close(self.memory_fd)
        os.close(self.wakeup_fd)

    def __reduce__(self) -> tuple[Any, ...]:
        fds = (reduction.DupFd(self.memory_fd), reduction.DupFd(self.wakeup_fd))
        return _received, (*fds, self.capacity)


def _received(memory_fd: Any, wakeup_fd: Any, capacity: int) -> RingFiles:
    return RingFiles(memory_fd.detach(), wakeup_fd.detach(), capacity)


def _fence(fd: int) -> None:
    """Order the memory accesses before and after: writing 0 wakes nobody, but enters the kernel."""
    os.eventfd_write(fd, 0)


def _wake(fd: int) -> None:
    """Wake whoever waits for the eventfd."""
    with suppress(BlockingIOError):  # it is readable already
        os.eventfd_write(fd, 1)


class _Mapped:
    """The shared memory of a ring, as both sides see it."""

    def __init__(self, files: RingFiles) -> None:
        self.capacity = files.capacity
        self.memory = mmap.mmap(files.memory_fd, _DATA + files.capacity)

    def get(self, offset: int) -> int:
        value: int = _U64.unpack_from(self.memory, offset)[0]
        return value

    def put(self, offset: int, value: int) -> None:
        _U64.pack_into(self.memory, offset, value)

    def spans(self, position: int, size: int) -> Iterator[tuple[int, int]]:
        """The one or two spans [start, end) of the file that hold `size` bytes."""
        start = position % self.capacity
        first = min(size, self.capacity - start)
        yield _DATA + start, _DATA + start + first
        if first < size:
            yield _DATA, _DATA + size - first


class RingWriter:
    """The side that writes. Records that do not fit wait here until the reader has read."""

    def __init__(self, files: RingFiles) -> None:
        self._ring = _Mapped(files)
        self._wakeup_fd = files.wakeup_fd
        self._head = self._ring.get(_HEAD)
        self._waiting: deque[tuple[int, Sequence[ReadableBuffer]]] = deque()
        self._is_unflushed = False

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """Append one record, made of the joined parts. ValueError if it could never fit."""
        size = sum(memoryview(part).nbytes for part in parts)
        if SIZE.size + size > self._ring.capacity:
            raise ValueError(
                f"a record of {size} bytes is larger than the ring, which takes records of up to "
                f"{self._ring.capacity - SIZE.size} bytes"
            )
        self._waiting.append((size, parts))
        self._copy_waiting()

    def flush(self) -> None:
        """Publish what was pushed, and wake the reader if there is something new."""
        self._copy_waiting()
        if self._is_unflushed:
            self._is_unflushed = False
            _fence(self._wakeup_fd)
            self._ring.put(_HEAD, self._head)
            _wake(self._wakeup_fd)

    def close(self) -> None:
        """Unmap the memory."""
        self._ring.memory.close()

    def _copy_waiting(self) -> None:
        """Copy waiting records into the ring, in order, as far as they fit."""
        while self._waiting:
            size, parts = self._waiting[0]
            if not self._fits(size) and not self._fits_after_asking(size):
                return
            self._waiting.popleft()
            self._copy(SIZE.pack(size))
            for part in parts:
                self._copy(part)
            self._is_unflushed = True

    def _fits(self, size: int) -> bool:
        used = self._head - self._ring.get(_TAIL)
        return used + SIZE.size + size <= self._ring.capacity

    def _fits_after_asking(self, size: int) -> bool:
        """Ask the reader to wake us, then look again: it may have read in between."""
        self._ring.put(_FULL, 1)
        _fence(self._wakeup_fd)
        return self._fits(size)

    def _copy(self, part: ReadableBuffer) -> None:
        view = memoryview(part).cast("B")
        done = 0
        for start, end in self._ring.spans(self._head, view.nbytes):
            self._ring.memory[start:end] = view[done : done + end - start]
            done += end - start
        self._head += view.nbytes


class RingReader:
    """The side that reads. A writer whose record did not fit is woken with `writer_wakeup_fd`."""

    def __init__(self, files: RingFiles, writer_wakeup_fd: int) -> None:
        self._ring = _Mapped(files)
        self._wakeup_fd = files.wakeup_fd
        self._writer_wakeup_fd = writer_wakeup_fd

    def take(self) -> list[bytearray]:
        """All records that were published since the last call. Never waits."""
        try:
            os.eventfd_read(self._wakeup_fd)
        except BlockingIOError:
            return []
        ring = self._ring
        tail, head = ring.get(_TAIL), ring.get(_HEAD)
        published = bytearray()
        with memoryview(ring.memory) as memory:
            for start, end in ring.spans(tail, head - tail):
                published += memory[start:end]
        _fence(self._wakeup_fd)
        ring.put(_TAIL, head)
        _fence(self._wakeup_fd)
        if ring.get(_FULL):
            ring.put(_FULL, 0)
            _wake(self._writer_wakeup_fd)
        return take_frames(published)

    def close(self) -> None:
        """Unmap the memory."""
        self._ring.memory.close()
