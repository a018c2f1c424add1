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
    num_unconsumed: int = 0  # chunks and END
    is_finished: bool = False
    is_cancelled: bool = False


class MemoryConnector:
    """An Edge whose sender and receiver share memory. That outlives the workers that open them."""

    def __init__(self, name: str, max_chunks: int = 8) -> None:
        self.name = name
        self._shared = _Shared(max_chunks)

    def open_sender(self, wakeup: Wakeup) -> MemorySender:
        """The upstream side, for a worker that this wakes."""
        self._shared.wake_sender = wakeup.wake
        return MemorySender(self._shared)

    def open_receiver(self, wakeup: Wakeup) -> MemoryReceiver:
        """The downstream side. Wakes its worker at once: something may have been sent already."""
        self._shared.wake_receiver = wakeup.wake
        wakeup.wake()
        return MemoryReceiver(self._shared)

    def close(self) -> None:
        """Drop everything that is unread, and all lanes."""
        with self._shared.lock:
            self._shared.unread.clear()
            self._shared.lanes.clear()

    def stats(self) -> EdgeStats:
        """What the edge holds now, and has done."""
        shared = self._shared
        with shared.lock:
            return EdgeStats(
                len(shared.lanes), len(shared.unread), shared.num_sent, shared.num_dropped
            )


def _wake_nobody() -> None:
    """The other side was not opened yet."""


class _Shared:
    """What sender and receiver share. One lock guards it; nobody holds the lock for long."""

    def __init__(self, max_chunks: int) -> None:
        self.max_chunks = max_chunks
        self.wake_sender = self.wake_receiver = _wake_nobody
        self.lock = threading.Lock()
        self.unread: deque[Delivery] = deque()
        self.lanes: dict[str, _Lane] = {}
        self.changed: set[str] = set()
        self.num_sent = 0
        self.num_dropped = 0

    def drop_unread(self, request_id: str) -> None:
        """Free what one lane has not delivered yet. Rare: only where a lane ends early."""
        self.unread = deque(d for d in self.unread if d.request_id != request_id)


class MemorySender:
    """The Sender of a MemoryConnector."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._is_unflushed = False

    def reset(self) -> None:
        """Forget all lanes, and send RESET."""
        with self._shared.lock:
            self._shared.lanes.clear()
            self._shared.unread.append(Delivery("", LaneSignal.RESET))
        self._is_unflushed = True

    def open_lane(self, request_id: str) -> None:
        """Begin a lane with full credit."""
        with self._shared.lock:
            self._shared.lanes[request_id] = _Lane()

    def credit(self, request_id: str) -> int:
        """How many chunks the lane takes now."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            if lane is None or lane.is_cancelled:
                return self._shared.max_chunks
            return self._shared.max_chunks - lane.num_unconsumed

    def send(self, request_id: str, chunk: Chunk) -> None:
        """Append a chunk, or drop and count it if its lane is cancelled or not open."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            if lane is None or lane.is_cancelled:
                self._shared.num_dropped += 1
                return
            lane.num_unconsumed += 1
            self._shared.num_sent += 1
            self._shared.unread.append(Delivery(request_id, chunk))
        self._is_unflushed = True

    def finish(self, request_id: str) -> None:
        """Append END."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            if lane is None or lane.is_cancelled:
                return
            lane.num_unconsumed += 1
            lane.is_finished = True
            self._shared.unread.append(Delivery(request_id, LaneSignal.END))
        self._is_unflushed = True

    def is_drained(self, request_id: str) -> bool:
        """Whether everything sent is consumed, or the lane is cancelled or not open."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            return (
                lane is None or lane.is_cancelled or (lane.is_finished and lane.num_unconsumed == 0)
            )

    def is_lost(self, request_id: str) -> bool:
        """Never: a receiver in the same process can always be reached."""
        return False

    def close_lane(self, request_id: str) -> None:
        """Forget the lane. If it was not drained, the receiver gets ABORT instead of the rest."""
        with self._shared.lock:
            lane = self._shared.lanes.pop(request_id, None)
            if lane is None or lane.is_cancelled or (lane.is_finished and lane.num_unconsumed == 0):
                return
            self._shared.drop_unread(request_id)
            self._shared.unread.append(Delivery(request_id, LaneSignal.ABORT))
        self._is_unflushed = True

    def changed(self) -> list[str]:
        """The lanes that got credit back, or were cancelled, since the last call."""
        if not self._shared.changed:
            return []
        with self._shared.lock:
            changed = list(self._shared.changed)
            self._shared.changed.clear()
        return changed

    def flush(self) -> None:
        """Wake the receiver if something was sent."""
        if self._is_unflushed:
            self._is_unflushed = False
            self._shared.wake_receiver()

    def close(self) -> None:
        """Nothing to free: the edge holds everything."""


class MemoryReceiver:
    """The Receiver of a MemoryConnector."""

    def __init__(self, shared: _Shared) -> None:
        self._shared = shared
        self._is_unflushed = False

    def receive(self) -> list[Delivery]:
        """Everything that is unread, in the order sent."""
        if not self._shared.unread:
            return []
        with self._shared.lock:
            unread = list(self._shared.unread)
            self._shared.unread.clear()
        return unread

    def consumed(self, request_id: str) -> None:
        """Give back the credit of one item."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            if lane is None:
                return
            lane.num_unconsumed -= 1
            self._shared.changed.add(request_id)
        self._is_unflushed = True

    def cancel(self, request_id: str) -> None:
        """Free what is unread of the lane, and drop what is still sent to it."""
        with self._shared.lock:
            lane = self._shared.lanes.get(request_id)
            if lane is None:
                return
            lane.is_cancelled = True
            if lane.num_unconsumed:
                self._shared.drop_unread(request_id)
            self._shared.changed.add(request_id)
        self._is_unflushed = True

    def flush(self) -> None:
        """Wake the sender if it got credit."""
        if self._is_unflushed:
            self._is_unflushed = False
            self._shared.wake_sender()

    def close(self) -> None:
        """Nothing to free: the edge holds everything."""
