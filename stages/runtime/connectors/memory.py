"""The connector between two workers of one process: chunks are handed over by reference."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.runtime.connectors.contract import Delivery, EdgeStats, LaneSignal

if TYPE_CHECKING:
    from stages.contract.messages import Chunk
    from stages.runtime.connectors.wakeup import Wakeup


@dataclass(slots=True)
class _Lane:
    unconsumed: int = 0  # chunks and END, sent and not yet consumed
    ended: bool = False
    hung_up: bool = False


class MemoryConnector:
    """Both ends are here; what they share outlives the workers that open them."""

    def __init__(self, name: str, max_chunks: int = 8) -> None:
        self.name = name
        self._edge = _Edge(max_chunks)

    def open_sender(self, site: Wakeup) -> MemorySender:
        """See Edge."""
        self._edge.ring_sender = site.ring
        return MemorySender(self._edge)

    def open_receiver(self, site: Wakeup) -> MemoryReceiver:
        """See Edge."""
        self._edge.ring_receiver = site.ring
        site.ring()  # something may have been sent already
        return MemoryReceiver(self._edge)

    def close(self) -> None:
        """See Edge."""
        with self._edge.lock:
            self._edge.ready.clear()
            self._edge.lanes.clear()

    def stats(self) -> EdgeStats:
        """What the edge holds and has done."""
        edge = self._edge
        with edge.lock:
            return EdgeStats(len(edge.lanes), len(edge.ready), edge.num_sent, edge.num_dropped)


def _nobody() -> None:
    """The other end was not opened yet."""


class _Edge:
    """What the two ends share, under one lock that nobody holds for long."""

    def __init__(self, max_chunks: int) -> None:
        self.max_chunks = max_chunks
        self.ring_sender = self.ring_receiver = _nobody
        self.lock = threading.Lock()
        self.ready: deque[Delivery] = deque()
        self.lanes: dict[str, _Lane] = {}
        self.changed: set[str] = set()
        self.num_sent = 0
        self.num_dropped = 0

    def drop_unread(self, request_id: str) -> None:
        """Free what one lane has not delivered yet. Rare: only where a lane ends early."""
        self.ready = deque(d for d in self.ready if d.request_id != request_id)


class MemorySender:
    """See Sender."""

    def __init__(self, edge: _Edge) -> None:
        self._edge = edge
        self._unflushed = False

    def reset(self) -> None:
        """See Sender."""
        with self._edge.lock:
            self._edge.lanes.clear()
            self._edge.ready.append(Delivery("", LaneSignal.RESET))
        self._unflushed = True

    def open(self, request_id: str) -> None:
        """See Sender."""
        with self._edge.lock:
            self._edge.lanes[request_id] = _Lane()

    def room(self, request_id: str) -> int:
        """See Sender."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            if lane is None or lane.hung_up:
                return self._edge.max_chunks
            return self._edge.max_chunks - lane.unconsumed

    def send(self, request_id: str, chunk: Chunk) -> None:
        """See Sender."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            if lane is None or lane.hung_up:
                self._edge.num_dropped += 1
                return
            lane.unconsumed += 1
            self._edge.num_sent += 1
            self._edge.ready.append(Delivery(request_id, chunk))
        self._unflushed = True

    def end(self, request_id: str) -> None:
        """See Sender."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            if lane is None or lane.hung_up:
                return
            lane.unconsumed += 1
            lane.ended = True
            self._edge.ready.append(Delivery(request_id, LaneSignal.END))
        self._unflushed = True

    def drained(self, request_id: str) -> bool:
        """See Sender."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            return lane is None or lane.hung_up or (lane.ended and lane.unconsumed == 0)

    def lost(self, request_id: str) -> bool:
        """See Sender."""
        return False

    def close(self, request_id: str) -> None:
        """See Sender."""
        with self._edge.lock:
            lane = self._edge.lanes.pop(request_id, None)
            if lane is None or lane.hung_up or (lane.ended and lane.unconsumed == 0):
                return
            self._edge.drop_unread(request_id)
            self._edge.ready.append(Delivery(request_id, LaneSignal.FAIL))
        self._unflushed = True

    def changed(self) -> list[str]:
        """See Sender."""
        if not self._edge.changed:
            return []
        with self._edge.lock:
            changed = list(self._edge.changed)
            self._edge.changed.clear()
        return changed

    def flush(self) -> None:
        """See Sender."""
        if self._unflushed:
            self._unflushed = False
            self._edge.ring_receiver()

    def shut(self) -> None:
        """See Sender: the edge holds everything."""


class MemoryReceiver:
    """See Receiver."""

    def __init__(self, edge: _Edge) -> None:
        self._edge = edge
        self._unflushed = False

    def receive(self) -> list[Delivery]:
        """See Receiver."""
        if not self._edge.ready:
            return []
        with self._edge.lock:
            ready = list(self._edge.ready)
            self._edge.ready.clear()
        return ready

    def consumed(self, request_id: str) -> None:
        """See Receiver."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            if lane is None:
                return
            lane.unconsumed -= 1
            self._edge.changed.add(request_id)
        self._unflushed = True

    def hang_up(self, request_id: str) -> None:
        """See Receiver."""
        with self._edge.lock:
            lane = self._edge.lanes.get(request_id)
            if lane is None:
                return
            lane.hung_up = True
            if lane.unconsumed:
                self._edge.drop_unread(request_id)
            self._edge.changed.add(request_id)
        self._unflushed = True

    def flush(self) -> None:
        """See Receiver."""
        if self._unflushed:
            self._unflushed = False
            self._edge.ring_sender()

    def shut(self) -> None:
        """See Receiver: the edge holds everything."""
