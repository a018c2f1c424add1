"""What runs in a Ray actor: a stage and its worker, for all servers that hold a lease on the actor.

There are few Ray calls: attach, renew the lease, detach. Orders and reports go over a socket of
the worker's own (`ray_control.py`), chunks over others. When a server's lease runs out, its
requests are aborted. When the last lease is gone, the actor ends itself, so that a killed server
leaves nothing behind. If the worker raises, the process ends, and Ray starts the actor again.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import ray
import structlog

from stages.contract.errors import StartError
from stages.runtime.connectors.remote.sockets import Listener, NetworkWakeup
from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.cores import CORES
from stages.runtime.executors.ray_control import Hello, StopDone
from stages.runtime.executors.startup import load_stage
from stages.runtime.worker.control import (
    Abort,
    AbortDone,
    AddCredit,
    Connect,
    ConnectionChanged,
    Output,
    Stop,
    Submit,
)
from stages.runtime.worker.edges import WorkerEdges
from stages.runtime.worker.step_stats import StepReport
from stages.runtime.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stages.contract.stage import Stage
    from stages.runtime.connectors.contract import Address
    from stages.runtime.worker.control import Order, Report
    from stages.runtime.worker.edges import Position

log = structlog.get_logger(__name__)

LEASE_S = 10.0


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """What an actor runs. `shape` must be the same for all servers that share it.

    `positions` have no edges: each server brings its own.
    """

    name: str
    make_stage: Callable[[], Stage]
    positions: tuple[Position, ...]

    @property
    def shape(self) -> str:
        """All of it as text, to compare."""
        return repr((self.name, self.make_stage, self.positions))


@dataclass(frozen=True, slots=True)
class ActorLocation:
    """The node of an actor, and the address of its control socket."""

    node_id: str
    address: Address


class StageActor:
    """The actor. The constructor loads the stage: an actor that answers is loaded and warm."""

    def __init__(self, spec: ActorSpec) -> None:
        self._spec = spec
        self._context = ray.get_runtime_context()
        CORES.limit(1)  # the other stages compute in other processes
        stage = load_stage(spec.make_stage)
        ip: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._mailbox = ActorMailbox(spec.name, ip)
        self._worker = Worker(
            stage, spec.positions, self._mailbox.edges, self._mailbox, self._mailbox.report
        )
        self._leases = Leases()
        self._leases.renew("")  # of the server that asked for this actor, until it attaches
        for name, target in (("worker", self._work), ("leases", self._watch_leases)):
            threading.Thread(target=target, name=name, daemon=True).start()

    def __repr__(self) -> str:
        """What Ray writes in front of each line of its log."""
        return self._spec.name

    def attach(self, server: str, shape: str) -> ActorLocation:
        """Give `server` a lease. StartError if it wants another stage by the same name."""
        if shape != self._spec.shape:
            raise StartError(
                f"{self._spec.name} runs with other settings in this cluster; use the same "
                "settings, or another namespace"
            )
        if not self._leases.renew(server):  # the last server has left; Ray gives the next actor
            ray.actor.exit_actor()  # type: ignore[no-untyped-call]
        return ActorLocation(self._context.get_node_id(), self._mailbox.address)

    def renew(self, server: str) -> int | None:
        """Renew a lease. Returns `num_live`, or None if the lease had run out."""
        return self.num_live if self._leases.renew(server, known=True) else None

    @property
    def num_live(self) -> int:
        """How many requests of all servers are here."""
        return self._mailbox.num_live

    def detach(self, server: str) -> None:
        """Give a lease back."""
        self._leases.drop(server)

    def _watch_leases(self) -> None:
        """Abort what ended leases leave, until no lease is left; then end this actor for good."""
        while self._leases.wait():
            for server in self._leases.take_ended():
                log.info("lease_ended", stage=self._spec.name, server=server)
                self._mailbox.forget(server)
        log.info("actor_ends", stage=self._spec.name)
        ray.kill(self._context.current_actor, no_restart=True)

    def _work(self) -> None:
        try:
            self._worker.run()
        except BaseException:  # noqa: BLE001 - the outermost frame of a worker
            traceback.print_exc()
        os._exit(1)


class Leases:
    """Which servers need this actor, and until when. Any thread may call its methods."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._ended: list[str] = []
        self._is_over = False
        self._changed = threading.Condition()

    def renew(self, server: str, *, known: bool = False) -> bool:
        """Give or extend a lease, for LEASE_S from now. Returns whether that was possible.

        It is not once the last lease has ended. With `known`, it is only for a lease that has not
        ended.
        """
        with self._changed:
            self._end_old()
            if self._is_over or (known and server not in self._until):
                return False
            self._until[server] = self._clock() + LEASE_S
            self._changed.notify()
            return True

    def drop(self, server: str) -> None:
        """End a lease now."""
        with self._changed:
            if self._until.pop(server, None) is not None:
                self._ended.append(server)
            self._changed.notify()

    def wait(self) -> bool:
        """Wait until a lease has ended. False if none is left; from then on none is given."""
        with self._changed:
            while self._until and not self._ended:
                self._changed.wait(max(0.0, min(self._until.values()) - self._clock()))
                self._end_old()
            self._is_over = not self._until
            return not self._is_over

    def take_ended(self) -> list[str]:
        """The servers whose leases ended since the last call."""
        with self._changed:
            ended, self._ended = self._ended, []
            return ended

    def _end_old(self) -> None:
        now = self._clock()
        for server in [each for each, until in self._until.items() if until <= now]:
            del self._until[server]
            self._ended.append(server)


class ActorMailbox:
    """A Mailbox with the orders of all servers. Each report goes to the server that it is for.

    A server is known by an id of its own, and by `peer`, which its connection is called.
    """

    def __init__(self, name: str, ip: str) -> None:
        self._name = name
        self._wakeup = NetworkWakeup(ip, self._on_connection)
        self._listener = Listener(self._wakeup)
        self.address = self._listener.address
        self.edges = WorkerEdges(self._wakeup)
        self._peers: dict[str, bytes] = {}  # by server
        self._edge_names: dict[str, set[str]] = {}  # by server
        self._has_unused_edges = False  # possibly
        self._requests: dict[str, tuple[bytes, Submit | Abort]] = {}  # each with its peer
        self._forgotten: deque[str] = deque()

    @property
    def num_live(self) -> int:
        """How many requests are here. Any thread may ask."""
        return len(self._requests)

    def forget(self, server: str) -> None:
        """From any thread: a server is gone, abort its requests."""
        self._forgotten.append(server)
        self._wakeup.wake()

    def take(self, *, block: bool) -> list[Order]:
        """All orders that have come. `block` waits for an order, or for news on an edge."""
        if self._has_unused_edges:  # the requests that used them are aborted by now
            self._has_unused_edges = False
            self.edges.close_others(set().union(*self._edge_names.values()))
        self._wakeup.wait(block=block)
        orders: list[Order] = []
        while self._forgotten:
            orders += self._remove_server(self._forgotten.popleft())
        self._listener.take_disconnected()
        for peer, _, parts in self._listener.take():
            for part in parts:
                orders += self._on_message(peer, decode(bytearray(part)))
        return orders

    def report(self, reports: list[Report]) -> None:
        """Send each report to the server that it is for. Dropped if that is gone."""
        messages: dict[bytes, list[Report]] = defaultdict(list)
        for report in reports:
            for peer, part in self._parts(report):
                messages[peer].append(part)
        for peer, message in messages.items():
            self._send(peer, message)

    def _parts(self, report: Report) -> Iterable[tuple[bytes, Report]]:
        match report:
            case StepReport():
                return report.by_server(self._peer_of).items()
            case ConnectionChanged(name):
                peers = [
                    self._peers[server]
                    for server, names in self._edge_names.items()
                    if name in names
                ]
            case Output(_, output):
                peers = self._peers_of(output.request_id, is_last=output.finished)
            case AbortDone(_, request_id):
                peers = self._peers_of(request_id, is_last=True)
        return [(peer, report) for peer in peers]

    def _peer_of(self, request_id: str) -> bytes | None:
        request = self._requests.get(request_id)
        return None if request is None else request[0]

    def _peers_of(self, request_id: str, *, is_last: bool) -> list[bytes]:
        """The peer of a request, none if the request is over; `is_last` ends it."""
        request = self._requests.get(request_id)
        if request is None:
            return []
        if is_last:
            del self._requests[request_id]
            log.info("request_left", stage=self._name, request_id=request_id)
        return [request[0]]

    def _on_message(self, peer: bytes, message: Any) -> list[Order]:
        match message:
            case Hello(server, positions):
                self._add_server(peer, server, positions)
            case Stop():
                self._send(peer, StopDone())
                return self._remove_server(self._server(peer))
            case Submit() | Abort() if self._server(peer):
                if isinstance(message, Submit):
                    log.info("request_came", stage=self._name, request_id=message.request_id)
                self._requests[message.request_id] = peer, message
                return [message]
            case AddCredit() | Connect() if self._server(peer):
                return [message]
        return []

    def _server(self, peer: bytes) -> str:
        """The server of a connection. Empty if its lease has ended."""
        return next((server for server, each in self._peers.items() if each == peer), "")

    def _add_server(self, peer: bytes, server: str, positions: tuple[Position, ...]) -> None:
        """Open a server's edges. Those between actors may be open already."""
        self.edges.open(positions)
        self._peers[server] = peer
        self._edge_names[server] = {
            edge.name for each in positions for edge in (*each.incoming, *each.outgoing)
        }
        self._send(peer, self.edges.ready)

    def _remove_server(self, server: str) -> list[Order]:
        """A server is gone. The aborts of all its requests."""
        self._edge_names.pop(server, None)
        self._has_unused_edges = True
        peer = self._peers.pop(server, b"")
        return [
            Abort(order.position, request_id, order.incoming)
            for request_id, (asker, order) in self._requests.items()
            if asker == peer
        ]

    def _on_connection(self, edge: str, is_up: bool) -> None:
        self.report([ConnectionChanged(edge, is_up)])

    def _send(self, peer: bytes, message: Any) -> None:
        self._listener.send(peer, [b"".join(encode(message))])
