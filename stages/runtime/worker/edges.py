"""A worker's edges: as its executor knows them (`Position`), and its own (`WorkerEdges`)."""

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

    `final` says whether the client sees its chunks, `max_unread` how many a request may have
    reported that the client has not consumed. `inlets` are its edges from each replica of the stage
    before, `outlets` to each of the next.
    """

    final: bool
    max_unread: int
    inlets: tuple[Edge, ...] = ()
    outlets: tuple[Edge, ...] = ()


def wakeup_across_processes(ip: str | None, report: Callable[[list[Report]], None]) -> PollWakeup:
    """The site of a worker with neighbours in other processes, and, with an `ip`, machines."""
    if ip is None:
        return PollWakeup(select.poll())
    from stages.runtime.connectors.remote import NetworkWakeup  # of an extra

    return NetworkWakeup(ip, lambda name, is_up: report([ConnectionChanged(name, is_up)]))


class WorkerEdges:
    """A worker's ends by the names of their edges: opened, used and shut in its thread."""

    def __init__(self, site: Wakeup) -> None:
        self.inlets: dict[str, Receiver] = {}
        self.outlets: dict[str, Sender] = {}
        self._site = site

    def open(self, ports: Iterable[Position]) -> None:
        """Open the ends of these positions, but for those that are open."""
        for port in ports:
            for edge in port.inlets:
                if edge.name not in self.inlets:
                    self.inlets[edge.name] = edge.open_receiver(self._site)
            for edge in port.outlets:
                if edge.name not in self.outlets:
                    self.outlets[edge.name] = outlet = edge.open_sender(self._site)
                    outlet.reset()

    def keep(self, names: Collection[str]) -> None:
        """Shut all others."""
        for name in self.inlets.keys() - names:
            self.inlets.pop(name).shut()
        for name in self.outlets.keys() - names:
            self.outlets.pop(name).shut()

    def reach(self, name: str, address: Address) -> None:
        """The receiver of an edge out of the worker is there."""
        outlet = self.outlets[name]
        assert isinstance(outlet, ConnectingSender)
        outlet.call(address)

    @property
    def ready(self) -> Ready:
        """What the neighbours have to know."""
        called = {
            name: end for name, end in self.inlets.items() if isinstance(end, ListeningReceiver)
        }
        addresses = {name: end.address for name, end in called.items()}
        return Ready(addresses, {name: end.is_linked for name, end in called.items()})
