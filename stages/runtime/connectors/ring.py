"""A bounded ring of byte records between two processes: one writes, one reads, neither waits.

It lies in an anonymous memory file (memfd): without a name there is nothing that a killed server
could leave behind, and nothing counts against the /dev/shm of a container. Each position is moved
by one end only, after its copying is done and a system call has passed in between (`_fence`), so
that no processor shows the position before the data. An eventfd is the reader's bell.
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

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from _typeshed import ReadableBuffer

_HEAD, _TAIL, _FULL, _DATA = 0, 8, 16, 24  # where each lies; the first three are uint64
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class RingFiles:
    """The descriptors of a ring. Can be sent to a process that is being started."""

    memory: int
    bell: int
    capacity: int

    @classmethod
    def create(cls, name: str, capacity: int) -> RingFiles:
        """New files; `capacity` in bytes also bounds one record."""
        memory = os.memfd_create(f"nano-omni:{name}", os.MFD_CLOEXEC)
        os.ftruncate(memory, _DATA + capacity)
        bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        return cls(memory, bell, capacity)

    def close(self) -> None:
        """Close this process's descriptors; the memory goes with the last process that has it."""
        os.close(self.memory)
        os.close(self.bell)

    def __reduce__(self) -> tuple[Any, ...]:
        fds = (reduction.DupFd(self.memory), reduction.DupFd(self.bell))
        return _received, (*fds, self.capacity)


def _received(memory: Any, bell: Any, capacity: int) -> RingFiles:
    return RingFiles(memory.detach(), bell.detach(), capacity)


def _fence(bell: int) -> None:
    """Order the memory accesses before and after: writing 0 wakes nobody, but enters the kernel."""
    os.eventfd_write(bell, 0)


def ring_bell(bell: int) -> None:
    """Wake whoever waits for `bell`."""
    with suppress(BlockingIOError):  # it rings already
        os.eventfd_write(bell, 1)


class _Mapped:
    """The shared memory of a ring, as both ends see it."""

    def __init__(self, files: RingFiles) -> None:
        self.capacity = files.capacity
        self.memory = mmap.mmap(files.memory, _DATA + files.capacity)

    def get(self, at: int) -> int:
        value: int = _U64.unpack_from(self.memory, at)[0]
        return value

    def put(self, at: int, value: int) -> None:
        _U64.pack_into(self.memory, at, value)

    def spans(self, position: int, size: int) -> Iterator[tuple[int, int]]:
        """The one or two stretches [start, end) of the file that hold `size` bytes."""
        start = position % self.capacity
        first = min(size, self.capacity - start)
        yield _DATA + start, _DATA + start + first
        if first < size:
            yield _DATA, _DATA + size - first


class RingWriter:
    """The one end that writes. What does not fit waits here until the reader has made room."""

    def __init__(self, files: RingFiles) -> None:
        self._ring = _Mapped(files)
        self._bell = files.bell
        self._head = self._ring.get(_HEAD)
        self._waiting: deque[tuple[int, Sequence[ReadableBuffer]]] = deque()
        self._unflushed = False

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """Append one record, the parts joined. ValueError if it could never fit."""
        size = sum(memoryview(part).nbytes for part in parts)
        if _U32.size + size > self._ring.capacity:
            raise ValueError(f"a record of {size} bytes is larger than the ring")
        self._waiting.append((size, parts))
        self._move()

    def flush(self) -> None:
        """Publish what was pushed, and wake the reader if there is something new."""
        self._move()
        if self._unflushed:
            self._unflushed = False
            _fence(self._bell)
            self._ring.put(_HEAD, self._head)
            ring_bell(self._bell)

    def close(self) -> None:
        """Unmap the memory."""
        self._ring.memory.close()

    def _move(self) -> None:
        while self._waiting:
            size, parts = self._waiting[0]
            if not self._has_room(size) and not self._has_room_after_asking(size):
                return
            self._waiting.popleft()
            self._copy(_U32.pack(size))
            for part in parts:
                self._copy(part)
            self._unflushed = True

    def _has_room(self, size: int) -> bool:
        used = self._head - self._ring.get(_TAIL)
        return used + _U32.size + size <= self._ring.capacity

    def _has_room_after_asking(self, size: int) -> bool:
        """Ask to be woken, then look again: the reader may have read in between."""
        self._ring.put(_FULL, 1)
        _fence(self._bell)
        return self._has_room(size)

    def _copy(self, part: ReadableBuffer) -> None:
        view = memoryview(part).cast("B")
        done = 0
        for start, end in self._ring.spans(self._head, view.nbytes):
            self._ring.memory[start:end] = view[done : done + end - start]
            done += end - start
        self._head += view.nbytes


class RingReader:
    """The one end that reads. `writer_bell` is rung when a writer that ran out of room has some."""

    def __init__(self, files: RingFiles, writer_bell: int) -> None:
        self._ring = _Mapped(files)
        self._bell = files.bell
        self._writer_bell = writer_bell

    def take(self) -> list[bytearray]:
        """All records that were published since the last call; never waits."""
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            return []
        ring = self._ring
        tail, head = ring.get(_TAIL), ring.get(_HEAD)
        records = []
        while tail < head:
            size = _U32.unpack(self._read(tail, _U32.size))[0]
            records.append(self._read(tail + _U32.size, size))
            tail += _U32.size + size
        _fence(self._bell)
        ring.put(_TAIL, tail)
        _fence(self._bell)
        if ring.get(_FULL):
            ring.put(_FULL, 0)
            ring_bell(self._writer_bell)
        return records

    def close(self) -> None:
        """Unmap the memory."""
        self._ring.memory.close()

    def _read(self, position: int, size: int) -> bytearray:
        record = bytearray()
        for start, end in self._ring.spans(position, size):
            record += self._ring.memory[start:end]
        return record
