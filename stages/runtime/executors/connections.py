"""A connection: an edge whose sender must connect to its receiver, as the server knows it.

The executors of its two workers report what they learn: the receiver's address, and whether the
sender is connected. The connection tells the sender the address, and the receiver's replica whether
requests can use this edge.
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
    """What a connection needs of the executors of its two workers."""

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
    """See above. `find_ip` gives this machine's address as the other worker's machine reaches it.

    `replica` is the receiver's; `previous_replica` is the number of the sender among the replicas
    of the stage before.
    """

    name: str
    sender: Connectable
    receiver: Connectable
    find_ip: Callable[[], Awaitable[str]]
    address: Address | None = None
    is_up: bool = False
    replica: Replica | None = None
    previous_replica: int = 0

    @property
    def can_be_up(self) -> bool:
        """Whether both workers are loaded."""
        return self.sender.is_loaded and self.receiver.is_loaded

    def set_up(self, is_up: bool) -> None:
        """It came up, or it is gone. New requests are bound accordingly."""
        self.is_up = is_up
        if self.replica is not None:
            if is_up:
                self.replica.unreachable_from.discard(self.previous_replica)
            else:
                self.replica.unreachable_from.add(self.previous_replica)

    def send_address(self) -> None:
        """Tell the sender the receiver's address, once both workers are loaded."""
        if self.can_be_up and self.address is not None:
            self.sender.post(Connect(self.name, self.address))
