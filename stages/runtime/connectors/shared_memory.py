"""The connector between two processes of one machine: two rings, data one way, credit the other.

Both rings are in memory that has no name (see `ring.py`). A worker that is started again maps the
same rings; `reset` tells the other end that what came before it is worth nothing.
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
    """What both ends are made from; created and closed by the server process."""

    name: str
    data: RingFiles
    credit: RingFiles
    max_chunks: int

    @classmethod
    def create(cls, name: str, max_chunks: int = 8) -> SharedMemoryEdge:
        """A new edge."""
        return cls(
            name,
            RingFiles.create(f"{name}:data", DATA_BYTES),
            RingFiles.create(f"{name}:credit", CREDIT_BYTES),
            max_chunks,
        )

    def open_sender(self, site: Wakeup) -> LaneSender:
        """See Edge. Its worker is woken by credit."""
        assert isinstance(site, PollWakeup)
        site.add(self.credit.bell)
        credit = RingReader(self.credit, self.data.bell)
        return LaneSender(RingWriter(self.data), credit, self.max_chunks)

    def open_receiver(self, site: Wakeup) -> LaneReceiver:
        """See Edge. Its worker is woken by chunks."""
        assert isinstance(site, PollWakeup)
        site.add(self.data.bell)
        return LaneReceiver(RingReader(self.data, self.credit.bell), RingWriter(self.credit))

    def close(self) -> None:
        """Close this process's descriptors."""
        self.data.close()
        self.credit.close()
