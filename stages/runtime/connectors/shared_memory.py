"""The connector between two processes of one machine: two rings, data one way, credit the other.

Both rings are in memory that has no name (see `ring.py`). A worker that is started again maps the
same rings. Its `reset` tells the receiver to discard everything that came before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.runtime.connectors.lanes import LaneReceiver, LaneSender
from stages.runtime.connectors.ring import RingFiles, RingReader, RingWriter
from stages.runtime.connectors.wakeup import PollWakeup

if TYPE_CHECKING:
    from stages.runtime.connectors.wakeup import Wakeup

DATA_BYTES = 1 << 20
CREDIT_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class SharedMemoryEdge:
    """An Edge over two rings. The server process creates and closes it."""

    name: str
    data: RingFiles
    credit: RingFiles
    max_chunks: int

    @classmethod
    def create(cls, name: str, max_chunks: int = 8) -> SharedMemoryEdge:
        """An edge with two new rings."""
        return cls(
            name,
            RingFiles.create(f"{name}:data", DATA_BYTES),
            RingFiles.create(f"{name}:credit", CREDIT_BYTES),
            max_chunks,
        )

    def open_sender(self, wakeup: Wakeup) -> LaneSender:
        """The upstream side. Credit wakes its worker."""
        assert isinstance(wakeup, PollWakeup)
        wakeup.add(self.credit.wakeup_fd)
        credit = RingReader(self.credit, self.data.wakeup_fd)
        return LaneSender(RingWriter(self.data), credit, self.max_chunks)

    def open_receiver(self, wakeup: Wakeup) -> LaneReceiver:
        """The downstream side. Chunks wake its worker."""
        assert isinstance(wakeup, PollWakeup)
        wakeup.add(self.data.wakeup_fd)
        data = RingReader(self.data, self.credit.wakeup_fd)
        return LaneReceiver(data, RingWriter(self.credit))

    def close(self) -> None:
        """Close this process's descriptors."""
        self.data.close()
        self.credit.close()
