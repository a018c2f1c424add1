"""The edges of a worker: as its executor knows them (`Position`), and as it uses them."""

from __future__ import annotations

import select
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.runtime.connectors.contract import ConnectingSender, ListeningReceiver
from stages.runtime.connectors.wakeup import PollWakeup
from stages.runtime.worker.control import ConnectionChanged, Ready

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from stages.runtime.connectors.contract import Address, Edge, Receiver, Sender
    from stages.runtime.connectors.wakeup import Wakeup
    from stages.runtime.worker.control import Report


@dataclass(frozen=True, slots=True)
class Position:
    """One pipeline position of a worker.

    `final` says whether the client sees its chunks. `max_unread` is how many chunks a request may
    have reported that the client has not consumed. `incoming` has an edge from each worker of the
    stage before, `outgoing` an edge to each worker of the next stage.
    """

    final: bool
    max_unread: int
    incoming: tuple[Edge, ...] = ()
    outgoing: tuple[Edge, ...] = ()


def wakeup_across_processes(ip: str | None, report: Callable[[list[Report]], None]) -> PollWakeup:
    """The wakeup of a worker with neighbours in other processes and, with an `ip`, on other
    machines. Those connect to this machine at `ip`; `report` gets each ConnectionChanged."""
    if ip is None:
        return PollWakeup(select.poll())
    from stages.runtime.connectors.remote.sockets import NetworkWakeup  # needs an extra

    return NetworkWakeup(ip, lambda name, is_up: report([ConnectionChanged(name, is_up)]))


class WorkerEdges:
    """A worker's receivers and senders by the names of their edges. Only its thread uses them."""

    def __init__(self, wakeup: Wakeup) -> None:
        self.receivers: dict[str, Receiver] = {}
        self.senders: dict[str, Sender] = {}
        self._wakeup = wakeup

    def open(self, positions: Iterable[Position]) -> None:
        """Open the edges of these positions, except for those that are open already."""
        for position in positions:
            for edge in position.incoming:
                if edge.name not in self.receivers:
                    self.receivers[edge.name] = edge.open_receiver(self._wakeup)
            for edge in position.outgoing:
                if edge.name not in self.senders:
                    self.senders[edge.name] = sender = edge.open_sender(self._wakeup)
                    sender.reset()

    def close_others(self, names: Collection[str]) -> None:
        """Close all edges except for those with these names."""
        for name in self.receivers.keys() - names:
            self.receivers.pop(name).close()
        for name in self.senders.keys() - names:
            self.senders.pop(name).close()

    def connect(self, name: str, address: Address) -> None:
        """Connect the sender of an outgoing edge to its receiver."""
        sender = self.senders[name]
        assert isinstance(sender, ConnectingSender)
        sender.connect(address)

    @property
    def ready(self) -> Ready:
        """What the neighbours have to know once the worker takes orders."""
        listening = {
            name: receiver
            for name, receiver in self.receivers.items()
            if isinstance(receiver, ListeningReceiver)
        }
        return Ready(
            {name: receiver.address for name, receiver in listening.items()},
            {name: receiver.is_connected for name, receiver in listening.items()},
        )
