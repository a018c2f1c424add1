"""Length-prefixed frames: how records are kept apart in a stream of bytes.

A frame is the size of its record (uint32, little endian), then the record. Rings in shared memory
and the control socket of a worker's process are such streams.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import ReadableBuffer

SIZE = struct.Struct("<I")


def make_frame(parts: Sequence[ReadableBuffer]) -> bytes:
    """The frame of one record, made of the joined parts."""
    return b"".join([SIZE.pack(sum(memoryview(part).nbytes for part in parts)), *parts])


def take_frames(stream: bytearray) -> list[bytearray]:
    """Remove the complete frames from the front of `stream`, and return their records in order.

    Each record is a copy of its own, which its reader may keep and write to.
    """
    records = []
    at, available = 0, len(stream)
    while available - at >= SIZE.size:
        begin = at + SIZE.size
        end = begin + SIZE.unpack_from(stream, at)[0]
        if end > available:
            break
        records.append(stream[begin:end])
        at = end
    del stream[:at]
    return records
