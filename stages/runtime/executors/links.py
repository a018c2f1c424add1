"""A link: an edge whose receiver has to be called, as the server knows it.

The executors of its two ends tell it what they hear: where the receiver is, and whether the sender
has called. It tells the sender where to call, and the receiver's seat whether requests can come
that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.runtime.executors.control import Reach

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stages.runtime.connectors.remote import Address
    from stages.runtime.executors.executor import Executor
    from stages.runtime.executors.face import Seat


@dataclass(slots=True)
class Link:
    """See above. `find_ip` tells this machine's address as the other end's machine reaches it."""

    name: str
    sender: Executor
    receiver: Executor
    find_ip: Callable[[], Awaitable[str]]
    address: Address | None = None
    is_up: bool = False
    seat: Seat | None = None  # the receiver's, and the number of the edge there
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
            self.sender.post(Reach(self.name, self.address))
