"""The connector between two processes of one machine: two rings, data one way, credit the other.

Both rings are in memory that has no name (see `ring.py`). A worker that is started again maps the
same rings; `reset` tells the other end that what came before it is worth nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.connectors.lanes import LaneReceiver, LaneSender
from stages.connectors.ring import RingFiles, RingReader, RingWriter

if TYPE_CHECKING:
    from stages.connectors.contract import EdgeStats

DATA_BYTES = 1 << 20
CREDIT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class SharedMemoryEdge:
    """What both ends are made from; created and closed by the server process."""

    data: RingFiles
    credit: RingFiles
    max_chunks: int

    @classmethod
    def create(cls, name: str, max_chunks: int = 8) -> SharedMemoryEdge:
        """A new edge; `name` is only for people who look at descriptors."""
        return cls(
            RingFiles.create(f"{name}:data", DATA_BYTES),
            RingFiles.create(f"{name}:credit", CREDIT_BYTES),
            max_chunks,
        )

    def open_sender(self) -> SharedMemorySender:
        """The upstream end; called where the upstream worker runs."""
        return SharedMemorySender(self)

    def open_receiver(self) -> SharedMemoryReceiver:
        """The downstream end; called where the downstream worker runs."""
        return SharedMemoryReceiver(self)

    def close(self) -> None:
        """Close this process's descriptors."""
        self.data.close()
        self.credit.close()


class SharedMemoryConnector:
    """Both ends in one process, for tests and for workers in threads."""

    def __init__(self, edge: SharedMemoryEdge) -> None:
        self._edge: SharedMemoryEdge | None = edge
        self.sender = SharedMemorySender(edge)
        self.receiver = SharedMemoryReceiver(edge)

    def close(self) -> None:
        """See Edge."""
        if self._edge is not None:
            self.sender.shut()
            self.receiver.shut()
            self._edge.close()
            self._edge = None

    def stats(self) -> EdgeStats:
        """What the sender knows."""
        return self.sender.stats()


class SharedMemorySender(LaneSender):
    """See Sender. Its worker waits on `bell` for credit."""

    def __init__(self, edge: SharedMemoryEdge) -> None:
        credit = RingReader(edge.credit, edge.data.bell)
        super().__init__(RingWriter(edge.data), credit, edge.max_chunks)
        self.bell = edge.credit.bell


class SharedMemoryReceiver(LaneReceiver):
    """See Receiver. Its worker waits on `bell` for chunks."""

    def __init__(self, edge: SharedMemoryEdge) -> None:
        super().__init__(RingReader(edge.data, edge.credit.bell), RingWriter(edge.credit))
        self.bell = edge.data.bell
