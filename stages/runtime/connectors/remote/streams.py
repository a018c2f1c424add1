"""The two streams of one side of a remote edge: over its connection, or through rings.

Over the connection, the records of a turn wait and are sent as one message. Once both sides have
mapped rings in shared memory, records go straight into these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.runtime.connectors.ring import RingReader, RingWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import ReadableBuffer

    from stages.runtime.connectors.shared_memory import SharedMemoryEdge
    from stages.runtime.connectors.wakeup import PollWakeup

HELLO, DATA = b"H", b"D"  # the first part of a message


class EdgeRings:
    """One side's rings of an edge in shared memory that was handed over."""

    def __init__(self, edge: SharedMemoryEdge, wakeup: PollWakeup, *, is_sender: bool) -> None:
        if is_sender:
            outgoing, incoming = edge.data, edge.credit
        else:
            outgoing, incoming = edge.credit, edge.data
        self.writer = RingWriter(outgoing)
        self.reader = RingReader(incoming, outgoing.wakeup_fd)
        self._edge = edge
        self._wakeup = wakeup
        self._wakeup_fd = incoming.wakeup_fd
        wakeup.add(self._wakeup_fd)

    def close(self) -> None:
        """Free this side."""
        self._wakeup.remove(self._wakeup_fd)
        self.writer.close()
        self.reader.close()
        self._edge.close()


class RemoteStreams:
    """A RecordWriter and a RecordReader in one. This base has no connection: it drops records."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self.rings: EdgeRings | None = None

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """Append one record, made of the joined parts."""
        if self.rings is not None:
            self.rings.writer.push(parts)
        else:
            self._records.append(b"".join(parts))

    def flush(self) -> None:
        """Send what was pushed. Without a connection it is dropped: its lanes are lost anyway."""
        if self.rings is not None:
            self.rings.writer.flush()
        elif self._records:
            records, self._records = self._records, []
            self._send([DATA, *records])

    def take(self) -> list[bytearray]:
        """All records that have come since the last call."""
        records = self._receive()
        return records + self.rings.reader.take() if self.rings is not None else records

    def close(self) -> None:
        """Free this side. May be called twice: it is both streams of a side."""
        self.restart(None)

    def restart(self, rings: EdgeRings | None) -> None:
        """Discard the records that wait, and use `rings` from now on."""
        self._records.clear()
        if self.rings is not None:
            self.rings.close()
        self.rings = rings

    def _send(self, parts: list[bytes]) -> None:
        """Send one message over the connection."""

    def _receive(self) -> list[bytearray]:
        """The records that came over the connection."""
        return []
