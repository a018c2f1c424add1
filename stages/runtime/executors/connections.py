"""A link: an edge whose receiver has to be called, as the server knows it.

The executors of its two ends tell it what they hear: where the receiver is, and whether the sender
has called. It tells the sender where to call, and the receiver's seat whether requests can come
that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from stages.runtime.worker.control import Connect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stages.runtime.connectors.contract import Address
    from stages.runtime.executors.handle import Replica
    from stages.runtime.worker.control import Order


class Connectable(Protocol):
    """What a connection needs of the executors of its two ends."""

    is_loaded: bool
    num_starts: int

    @property
    def is_stopping(self) -> bool:
        """Whether the worker was told to stop, and should stay ended."""

    def post(self, order: Order) -> None:
        """Put an order into the worker's inbox. Never waits."""

    def connections_changed(self) -> None:
        """One of the worker's connections came up, or a neighbour is gone."""


@dataclass(slots=True)
class Connection:
    """See above. `find_ip` tells this machine's address as the other end's machine reaches it."""

    name: str
    sender: Connectable
    receiver: Connectable
    find_ip: Callable[[], Awaitable[str]]
    address: Address | None = None
    is_up: bool = False
    seat: Replica | None = None  # the receiver's, and the number of the edge there
    number: int = 0

    @property
    def is_wanted(self) -> bool:
        """Whether both ends are there."""
        return self.sender.is_loaded and self.receiver.is_loaded

    def turn(self, is_up: bool) -> None:
        """It came up, or it is gone: requests are bound accordingly."""
        self.is_up = is_up
        if self.seat is not None:
            (self.seat.cut.discard if is_up else self.seat.cut.add)(self.number)

    def introduce(self) -> None:
        """Tell the sender where the receiver is, once both are there."""
        if self.is_wanted and self.address is not None:
            self.sender.post(Connect(self.name, self.address))
