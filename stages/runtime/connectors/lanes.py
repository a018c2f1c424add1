"""Lanes over two one-way streams of records: chunks one way, credit the other.

What the connectors between processes share. The sender keeps the lanes and what they have left; the
receiver says what it consumed and where it hung up. How records travel is the streams' business.
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


class Outgoing(Protocol):
    """The end of a stream that writes."""

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """Append one record, the parts joined. Never waits."""

    def flush(self) -> None:
        """Publish what was pushed, and wake the reader if there is something new."""

    def close(self) -> None:
        """Free this end."""


class Incoming(Protocol):
    """The end of a stream that reads."""

    def take(self) -> list[bytearray]:
        """All records that were published since the last call; never waits."""

    def close(self) -> None:
        """Free this end."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """The receiver's stage took `count` items of a lane."""

    request_id: str
    count: int


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The receiver wants nothing more of a lane."""

    request_id: str


@dataclass(slots=True)
class _Lane:
    unconsumed: int = 0
    ended: bool = False
    hung_up: bool = False
    lost: bool = False

    @property
    def drained(self) -> bool:
        return self.hung_up or (self.ended and self.unconsumed == 0)


class LaneSender:
    """See Sender."""

    def __init__(self, data: Outgoing, credit: Incoming, max_chunks: int) -> None:
        self._data = data
        self._credit = credit
        self._max_chunks = max_chunks
        self._lanes: dict[str, _Lane] = {}
        self._num_sent = 0
        self._num_dropped = 0

    def open(self, request_id: str) -> None:
        """See Sender."""
        self._lanes[request_id] = _Lane()

    def room(self, request_id: str) -> int:
        """See Sender."""
        lane = self._lanes.get(request_id)
        if lane is None or lane.hung_up:
            return self._max_chunks
        return self._max_chunks - lane.unconsumed

    def send(self, request_id: str, chunk: Chunk) -> None:
        """See Sender."""
        if self._put(request_id, chunk):
            self._num_sent += 1
        else:
            self._num_dropped += 1

    def end(self, request_id: str) -> None:
        """See Sender."""
        if self._put(request_id, LaneSignal.END):
            self._lanes[request_id].ended = True

    def drained(self, request_id: str) -> bool:
        """See Sender."""
        lane = self._lanes.get(request_id)
        return lane is None or lane.drained

    def lost(self, request_id: str) -> bool:
        """See Sender."""
        lane = self._lanes.get(request_id)
        return lane is not None and lane.lost

    def close(self, request_id: str) -> None:
        """See Sender."""
        lane = self._lanes.pop(request_id, None)
        if lane is not None and not (lane.ended and lane.drained):
            self._fail(request_id)

    def changed(self) -> list[str]:
        """See Sender."""
        changed: set[str] = set()
        for record in self._credit.take():
            told = decode(record)
            lane = self._lanes.get(told.request_id)
            if lane is not None:
                changed.add(told.request_id)
                if isinstance(told, Consumed):
                    lane.unconsumed -= told.count
                else:
                    lane.hung_up = True
            elif isinstance(told, Cancelled):
                self._fail(told.request_id)  # so that the receiver can forget it
        return list(changed)

    def flush(self) -> None:
        """See Sender."""
        self._data.flush()

    def reset(self) -> None:
        """See Sender."""
        self._lanes.clear()
        self._data.push(encode(Delivery("", LaneSignal.RESET)))

    def stats(self) -> EdgeStats:
        """What this end knows; chunks that the receiver has parked count as unread."""
        unread = sum(lane.unconsumed for lane in self._lanes.values() if not lane.hung_up)
        return EdgeStats(len(self._lanes), unread, self._num_sent, self._num_dropped)

    def shut(self) -> None:
        """Free this end."""
        self._lanes.clear()
        self._data.close()
        self._credit.close()

    def _fail(self, request_id: str) -> None:
        self._data.push(encode(Delivery(request_id, LaneSignal.FAIL)))

    def _put(self, request_id: str, item: Chunk | LaneSignal) -> bool:
        lane = self._lanes.get(request_id)
        if lane is None or lane.hung_up:
            return False
        lane.unconsumed += 1
        self._data.push(encode(Delivery(request_id, item)))
        return True


class LaneReceiver:
    """See Receiver."""

    def __init__(self, data: Incoming, credit: Outgoing) -> None:
        self._data = data
        self._credit = credit
        self._consumed: Counter[str] = Counter()
        self._ended: set[str] = set()  # END has come, and the lane was not hung up
        self._unwanted: set[str] = set()  # hung up, and neither END nor FAIL has come

    def receive(self) -> list[Delivery]:
        """See Receiver."""
        deliveries = (decode(record) for record in self._data.take())
        return [delivery for delivery in deliveries if self._is_wanted(delivery)]

    def consumed(self, request_id: str) -> None:
        """See Receiver."""
        self._consumed[request_id] += 1

    def hang_up(self, request_id: str) -> None:
        """See Receiver."""
        self._consumed.pop(request_id, None)
        if request_id in self._ended:
            self._ended.remove(request_id)
        else:
            self._unwanted.add(request_id)
        self._credit.push(encode(Cancelled(request_id)))

    def flush(self) -> None:
        """See Receiver."""
        for request_id, count in self._consumed.items():
            self._credit.push(encode(Consumed(request_id, count)))
        self._consumed.clear()
        self._credit.flush()

    def shut(self) -> None:
        """Free this end."""
        self._data.close()
        self._credit.close()

    def _is_wanted(self, delivery: Delivery) -> bool:
        request_id, item = delivery.request_id, delivery.item
        if item is LaneSignal.RESET:
            self._ended.clear()
            self._unwanted.clear()
        elif request_id in self._unwanted:
            if item is LaneSignal.END or item is LaneSignal.FAIL:
                self._unwanted.remove(request_id)
            return False
        elif item is LaneSignal.END:
            self._ended.add(request_id)
        elif item is LaneSignal.FAIL:
            self._ended.discard(request_id)
        return True
