"""Lanes over two one-way streams of records: chunks one way, credit the other.

The connectors between processes share this. The sender keeps the lanes and their credit. The
receiver reports what it consumed and what it cancelled. How records travel is the streams' concern.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stages.runtime.connectors.contract import Delivery, EdgeStats, LaneSignal
from stages.runtime.connectors.serialization import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import ReadableBuffer

    from stages.contract.messages import Chunk


class RecordWriter(Protocol):
    """The writing side of a stream."""

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """Append one record, made of the joined parts. Never waits."""

    def flush(self) -> None:
        """Publish what was pushed, and wake the reader if there is something new."""

    def close(self) -> None:
        """Free this side."""


class RecordReader(Protocol):
    """The reading side of a stream."""

    def take(self) -> list[bytearray]:
        """All records that were published since the last call. Never waits."""

    def close(self) -> None:
        """Free this side."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """The receiver's stage took `count` items of a lane."""

    request_id: str
    count: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The receiver takes nothing more of a lane."""

    request_id: str


@dataclass(slots=True)
class _Lane:
    num_unconsumed: int = 0  # chunks and END
    is_finished: bool = False
    is_cancelled: bool = False
    is_lost: bool = False

    @property
    def is_drained(self) -> bool:
        return self.is_cancelled or (self.is_finished and self.num_unconsumed == 0)


class LaneSender:
    """A Sender that writes chunks into one stream, and reads credit from another."""

    def __init__(self, data: RecordWriter, credit: RecordReader, max_chunks: int) -> None:
        self._data = data
        self._credit = credit
        self._max_chunks = max_chunks
        self._lanes: dict[str, _Lane] = {}
        self._num_sent = 0
        self._num_dropped = 0

    def open_lane(self, request_id: str) -> None:
        """Begin a lane with full credit."""
        self._lanes[request_id] = _Lane()

    def credit(self, request_id: str) -> int:
        """How many chunks the lane takes now."""
        lane = self._lanes.get(request_id)
        if lane is None or lane.is_cancelled:
            return self._max_chunks
        return self._max_chunks - lane.num_unconsumed

    def send(self, request_id: str, chunk: Chunk) -> None:
        """Append a chunk, or drop and count it if its lane is cancelled or not open."""
        if self._put(request_id, chunk):
            self._num_sent += 1
        else:
            self._num_dropped += 1

    def finish(self, request_id: str) -> None:
        """Append END."""
        if self._put(request_id, LaneSignal.END):
            self._lanes[request_id].is_finished = True

    def is_drained(self, request_id: str) -> bool:
        """Whether everything sent is consumed, or the lane is cancelled or not open."""
        lane = self._lanes.get(request_id)
        return lane is None or lane.is_drained

    def is_lost(self, request_id: str) -> bool:
        """Whether the lane's receiver cannot be reached."""
        lane = self._lanes.get(request_id)
        return lane is not None and lane.is_lost

    def close_lane(self, request_id: str) -> None:
        """Forget the lane. The receiver gets ABORT if it does not know that the lane is over."""
        lane = self._lanes.pop(request_id, None)
        if lane is not None and not (lane.is_finished and lane.is_drained):
            self._abort(request_id)

    def changed(self) -> list[str]:
        """Apply the credit that has arrived, and return its lanes."""
        changed: set[str] = set()
        for record in self._credit.take():
            notice = decode(record)
            lane = self._lanes.get(notice.request_id)
            if lane is not None:
                changed.add(notice.request_id)
                if isinstance(notice, Consumed):
                    lane.num_unconsumed -= notice.count
                else:
                    lane.is_cancelled = True
            elif isinstance(notice, Cancelled):
                self._abort(notice.request_id)  # so that the receiver can forget the lane
        return list(changed)

    def flush(self) -> None:
        """Publish what was sent, and wake the receiver."""
        self._data.flush()

    def reset(self) -> None:
        """Forget all lanes, and send RESET."""
        self._lanes.clear()
        self._data.push(encode(Delivery("", LaneSignal.RESET)))

    def stats(self) -> EdgeStats:
        """What this side knows. Chunks that wait in the receiver's worker count as unread."""
        unread = sum(lane.num_unconsumed for lane in self._lanes.values() if not lane.is_cancelled)
        return EdgeStats(len(self._lanes), unread, self._num_sent, self._num_dropped)

    def close(self) -> None:
        """Forget all lanes, and free both streams."""
        self._lanes.clear()
        self._data.close()
        self._credit.close()

    def _abort(self, request_id: str) -> None:
        self._data.push(encode(Delivery(request_id, LaneSignal.ABORT)))

    def _put(self, request_id: str, item: Chunk | LaneSignal) -> bool:
        lane = self._lanes.get(request_id)
        if lane is None or lane.is_cancelled:
            return False
        lane.num_unconsumed += 1
        self._data.push(encode(Delivery(request_id, item)))
        return True


class LaneReceiver:
    """A Receiver that reads chunks from one stream, and writes credit into another."""

    def __init__(self, data: RecordReader, credit: RecordWriter) -> None:
        self._data = data
        self._credit = credit
        self._consumed: Counter[str] = Counter()
        self._ended: set[str] = set()  # END has come, and the lane was not cancelled
        self._cancelled: set[str] = set()  # cancelled, and neither END nor ABORT has come

    def receive(self) -> list[Delivery]:
        """Everything that has arrived, without the rest of cancelled lanes."""
        deliveries = (decode(record) for record in self._data.take())
        return [delivery for delivery in deliveries if self._is_deliverable(delivery)]

    def consumed(self, request_id: str) -> None:
        """Count one item, whose credit the next flush gives back."""
        self._consumed[request_id] += 1

    def cancel(self, request_id: str) -> None:
        """Drop what still comes of the lane, until its END or ABORT, and tell the sender."""
        self._consumed.pop(request_id, None)
        if request_id in self._ended:
            self._ended.remove(request_id)
        else:
            self._cancelled.add(request_id)
        self._credit.push(encode(Cancelled(request_id)))

    def flush(self) -> None:
        """Give back the credit of what was consumed, and wake the sender."""
        for request_id, count in self._consumed.items():
            self._credit.push(encode(Consumed(request_id, count)))
        self._consumed.clear()
        self._credit.flush()

    def close(self) -> None:
        """Free both streams."""
        self._data.close()
        self._credit.close()

    def _is_deliverable(self, delivery: Delivery) -> bool:
        request_id, item = delivery.request_id, delivery.item
        if item is LaneSignal.RESET:
            self._ended.clear()
            self._cancelled.clear()
        elif request_id in self._cancelled:
            if item is LaneSignal.END or item is LaneSignal.ABORT:
                self._cancelled.remove(request_id)
            return False
        elif item is LaneSignal.END:
            self._ended.add(request_id)
        elif item is LaneSignal.ABORT:
            self._ended.discard(request_id)
        return True
