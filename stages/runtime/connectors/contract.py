"""The connector contract: one bounded, ordered edge from a stage worker to the next.

Each request that is open on the edge has a lane: its chunks, then its end, in one stream. A lane
holds at most `max_chunks` chunks that the receiver has not consumed; a sender asks for room and
never waits. Every implementation passes `tests/stages/runtime/connectors/conformance.py`.

The two ends belong to two workers, each called from its own thread. An end is opened with the
`Wakeup` of its worker, which the other end calls when it has something for it. Ends in one process
or on one machine share memory. Ends that may be on two machines do not: there the receiver
has an address, the server tells it to the sender, and the sender connects. Nothing here knows what
a chunk means.
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
    """Where somebody listens, and the secret that callers must know. `door` is where processes of
    the same machine hand in an edge (see `fd_passing.py`); empty where that is not possible."""

    endpoint: str
    secret: str
    door: str = ""


class LaneSignal(Enum):
    """What can follow the chunks in a lane."""

    END = auto()  # no more chunks
    FAIL = auto()  # the sender gave up; what is unread is worth nothing
    RESET = auto()  # of all lanes: the sender is a new one, and what came before is worth nothing


@dataclass(frozen=True, slots=True)
class Delivery:
    """One item of one lane, as it reaches the receiver."""

    request_id: str
    item: Chunk | LaneSignal


@dataclass(frozen=True, slots=True)
class EdgeStats:
    """`num_dropped` counts chunks that came for a lane whose receiver had hung up."""

    num_lanes: int
    num_unread: int
    num_sent: int
    num_dropped: int


class Sender(Protocol):
    """The upstream end."""

    def reset(self) -> None:
        """Called once by a worker that starts: there are no lanes, and the receiver gets RESET."""

    def open(self, request_id: str) -> None:
        """Begin a lane. Without one, everything sent is dropped and counted."""

    def room(self, request_id: str) -> int:
        """How many chunks the lane takes now; plenty once the receiver has hung up."""

    def send(self, request_id: str, chunk: Chunk) -> None:
        """Append a chunk; the caller made sure of room. Dropped if the receiver has hung up."""

    def end(self, request_id: str) -> None:
        """Say that no more chunks come; needs no room."""

    def drained(self, request_id: str) -> bool:
        """Whether all that was sent, the end too, is consumed, or the receiver has hung up."""

    def lost(self, request_id: str) -> bool:
        """Whether the receiver is out of reach, and the lane will never be drained."""

    def close(self, request_id: str) -> None:
        """Forget the lane. If it was not drained, the receiver gets FAIL instead of the rest."""

    def changed(self) -> list[str]:
        """The lanes whose room, drained or lost state has changed since the last call."""

    def flush(self) -> None:
        """Wake the receiver, once for all that was sent since the last flush."""

    def shut(self) -> None:
        """Free this end; there is no other call after it."""


class Receiver(Protocol):
    """The downstream end."""

    def receive(self) -> list[Delivery]:
        """Everything that is ready, in the order sent."""

    def consumed(self, request_id: str) -> None:
        """One item (a chunk or END) was taken by the stage: its credit goes back."""

    def hang_up(self, request_id: str) -> None:
        """Nothing more is wanted of the lane; what is unread is freed. Unknown ids are ignored."""

    def flush(self) -> None:
        """Wake the sender, once for all the credit given since the last flush."""

    def shut(self) -> None:
        """Free this end; there is no other call after it."""


@runtime_checkable
class ConnectingSender(Protocol):
    """A sender that has to be told where its receiver is. Before that all its lanes are lost."""

    def call(self, address: Address) -> None:
        """Send to the receiver that is there; the one that it calls already stays."""


@runtime_checkable
class ListeningReceiver(Protocol):
    """A receiver that its sender has to call."""

    address: Address

    @property
    def is_linked(self) -> bool:
        """Whether a sender has called, and is there."""


class Edge(Protocol):
    """An edge, as the process that owns it holds it: where its ends come from, and its end.

    No other edge of the same worker has its name.
    """

    @property
    def name(self) -> str:
        """What both ends call it."""

    def open_sender(self, site: Wakeup) -> Sender:
        """The upstream end; called where the upstream worker runs, each time that one starts."""

    def open_receiver(self, site: Wakeup) -> Receiver:
        """The downstream end, likewise."""

    def close(self) -> None:
        """Free everything, whoever calls and whatever was unread. May be called twice."""
