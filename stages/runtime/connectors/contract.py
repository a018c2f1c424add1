"""The connector contract: one bounded, ordered edge from a stage worker to the next.

Each request that is open on the edge has a lane: its chunks, then its end, in one stream. A lane
holds at most `max_chunks` chunks that the receiver has not consumed. A sender asks for its credit
before it sends, and never waits. Every implementation passes
`tests/stages/runtime/connectors/conformance.py`.

The sender and the receiver belong to two workers. Each is called from its own worker's thread. Each
is opened with the `Wakeup` of its worker, and the other side wakes that worker when it has
something for it. A sender and a receiver in one process or on one machine share memory. Where they
may be on two machines, the receiver has an address, the server gives it to the sender, and the
sender connects. Nothing here knows what a chunk means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from stages.contract.messages import Chunk
    from stages.runtime.connectors.wakeup import Wakeup


@dataclass(frozen=True, slots=True)
class Address:
    """Where a socket listens, and the secret that a peer must send to connect.

    `edge_inbox` is the name of the socket at which processes of the same machine hand in an edge
    (see `fd_passing.py`). It is empty where that is not possible.
    """

    endpoint: str
    secret: str
    edge_inbox: str = ""


class LaneSignal(Enum):
    """What can follow the chunks in a lane."""

    END = auto()  # no more chunks
    ABORT = auto()  # the sender gave up: discard what is unread
    RESET = auto()  # of all lanes: the sender was started again, discard everything before


@dataclass(frozen=True, slots=True)
class Delivery:
    """One item of one lane, as it reaches the receiver."""

    request_id: str
    item: Chunk | LaneSignal


@dataclass(frozen=True, slots=True)
class EdgeStats:
    """`num_dropped` counts the chunks sent to a lane that is not open, or that was cancelled."""

    num_lanes: int
    num_unread: int
    num_sent: int
    num_dropped: int


class Sender(Protocol):
    """The upstream side of an edge."""

    def reset(self) -> None:
        """Forget all lanes; the receiver gets RESET. A worker calls it once, when it starts."""

    def open_lane(self, request_id: str) -> None:
        """Begin a lane. What is sent without an open lane is dropped and counted."""

    def credit(self, request_id: str) -> int:
        """How many chunks the lane takes now: `max_chunks` if it is cancelled or not open."""

    def send(self, request_id: str, chunk: Chunk) -> None:
        """Append a chunk. The caller has checked the credit. Dropped if the lane is cancelled."""

    def finish(self, request_id: str) -> None:
        """Say that no more chunks come. Needs no credit."""

    def is_drained(self, request_id: str) -> bool:
        """Whether everything sent, and the end, is consumed; true also if the lane is cancelled."""

    def is_lost(self, request_id: str) -> bool:
        """Whether the receiver cannot be reached, so that the lane will never be drained."""

    def close_lane(self, request_id: str) -> None:
        """Forget the lane. If it was not drained, the receiver gets ABORT instead of the rest."""

    def changed(self) -> list[str]:
        """The lanes whose credit, drained or lost state has changed since the last call."""

    def flush(self) -> None:
        """Wake the receiver, once for everything that was sent since the last flush."""

    def close(self) -> None:
        """Free this side. It is not used after that."""


class Receiver(Protocol):
    """The downstream side of an edge."""

    def receive(self) -> list[Delivery]:
        """Everything that has arrived, in the order in which it was sent."""

    def consumed(self, request_id: str) -> None:
        """The stage took one item (a chunk or END). Its credit goes back to the sender."""

    def cancel(self, request_id: str) -> None:
        """Take nothing more of the lane, and free what is unread. Unknown ids are ignored."""

    def flush(self) -> None:
        """Wake the sender, once for all the credit given since the last flush."""

    def close(self) -> None:
        """Free this side. It is not used after that."""


@runtime_checkable
class ConnectingSender(Protocol):
    """A sender that must be given its receiver's address. Until then all its lanes are lost."""

    def connect(self, address: Address) -> None:
        """Connect to the receiver at this address. Does nothing if it has this address already."""


@runtime_checkable
class ListeningReceiver(Protocol):
    """A receiver that its sender connects to."""

    address: Address

    @property
    def is_connected(self) -> bool:
        """Whether a sender is connected."""


class Edge(Protocol):
    """An edge, as the process that owns it holds it. It opens the sender and the receiver.

    No other edge of the same worker has its name.
    """

    @property
    def name(self) -> str:
        """What the workers on both sides call it."""

    def open_sender(self, wakeup: Wakeup) -> Sender:
        """The upstream side. Called in the upstream worker, each time that one starts."""

    def open_receiver(self, wakeup: Wakeup) -> Receiver:
        """The downstream side. Called in the downstream worker, each time that one starts."""

    def close(self) -> None:
        """Free everything, also what is unread. May be called twice."""
