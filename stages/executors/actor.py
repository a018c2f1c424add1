"""What runs in an actor on Ray: a stage and its worker, for all servers that hold a lease on it.

Ray calls are few: to attach, to renew the lease, to detach. Orders and reports go over a socket of
the worker's own (`line.py`), chunks over others. A server whose lease runs out has its requests
aborted; when the last lease is gone the actor ends itself, so that nothing is left of a server that
was killed. A worker that raises takes the process with it, and Ray starts the actor again.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
import traceback
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import ray
import structlog

from stages.connectors.codec import decode, encode
from stages.connectors.remote import Listener, RemoteEdge, RemoteSender, Site
from stages.cores import CORES
from stages.errors import StartError
from stages.executors.control import Abort, AbortDone, Credit, Output, Stop, Submit
from stages.executors.figures import Told
from stages.executors.launch import bring_up
from stages.executors.line import Hello, Left, Linked, Reach, Ready
from stages.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stages.connectors.remote import Address
    from stages.executors.control import Order, Report
    from stages.executors.executor import Port
    from stages.stage import Stage

log = structlog.get_logger(__name__)

LEASE_S = 10.0


@dataclass(frozen=True, slots=True)
class ActorSpec:
    """What an actor runs; all servers that share it must mean the same (`shape`)."""

    name: str
    make_stage: Callable[[], Stage]
    ports: tuple[Port, ...]

    @property
    def shape(self) -> str:
        """Everything about it, as text."""
        return repr((self.name, self.make_stage, self.ports))


@dataclass(frozen=True, slots=True)
class Where:
    """Where a worker is: its line for servers, and the edges into it by their names."""

    node_id: str
    line: Address
    inlets: Mapping[str, Address]


class StageActor:
    """See above. Loading is the constructor: an actor that answers is loaded and warm."""

    def __init__(self, spec: ActorSpec) -> None:
        self._spec = spec
        self._context = ray.get_runtime_context()
        CORES.limit(1)  # the other stages compute in other processes
        stage = bring_up(spec.make_stage)
        ip: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        site = Site(ip, secrets.token_hex(16))
        site.guard()
        wirings = [port.open() for port in spec.ports]
        ends = [
            (edge, end)
            for port, wiring in zip(spec.ports, wirings, strict=True)
            for edge, end in zip(
                (*port.inlets, *port.outlets), (*wiring.inlets, *wiring.outlets), strict=True
            )
        ]
        named = {edge.name: end for edge, end in ends if isinstance(edge, RemoteEdge)}
        self._mailbox = ActorMailbox(spec.name, site, named)
        self._worker = Worker(stage, wirings, self._mailbox, self._mailbox.report)
        self._leases = Leases()
        self._leases.renew("")  # of whoever asked for this actor, until it attaches
        for name, target in (("worker", self._work), ("leases", self._watch_leases)):
            threading.Thread(target=target, name=name, daemon=True).start()

    def __repr__(self) -> str:
        """What Ray writes in front of each line of its log."""
        return self._spec.name

    def attach(self, server: str, shape: str) -> Where:
        """A lease for `server`. StartError if it means another stage by this name."""
        if shape != self._spec.shape:
            raise StartError(f"{self._spec.name} runs with other settings in this cluster")
        self._leases.renew(server)
        return Where(self._context.get_node_id(), self._mailbox.address, self._mailbox.inlets)

    def renew(self, server: str) -> int | None:
        """Keep a lease; how many requests of all servers are here, None if it had run out."""
        return self._mailbox.num_live if self._leases.renew(server, known=True) else None

    def detach(self, server: str) -> None:
        """Give a lease back."""
        self._leases.drop(server)

    def _watch_leases(self) -> None:
        """Until no lease is left; then end this actor, for good."""
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
    """Who needs this actor, and until when. Methods may be called from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: dict[str, float] = {}
        self._ended: list[str] = []
        self._changed = threading.Condition()

    def renew(self, server: str, *, known: bool = False) -> bool:
        """From now for LEASE_S; with `known`, only one that has not ended."""
        with self._changed:
            self._end_old()
            if known and server not in self._until:
                return False
            self._until[server] = self._clock() + LEASE_S
            self._changed.notify()
            return True

    def drop(self, server: str) -> None:
        """End it now."""
        with self._changed:
            if self._until.pop(server, None) is not None:
                self._ended.append(server)
            self._changed.notify()

    def wait(self) -> bool:
        """Returns when one has ended; False when none is left."""
        with self._changed:
            while self._until and not self._ended:
                self._changed.wait(max(0.0, min(self._until.values()) - self._clock()))
                self._end_old()
            return bool(self._until)

    def take_ended(self) -> list[str]:
        """Those that ended since the last call."""
        with self._changed:
            ended, self._ended = self._ended, []
            return ended

    def _end_old(self) -> None:
        now = self._clock()
        for server in [each for each, until in self._until.items() if until <= now]:
            del self._until[server]
            self._ended.append(server)


class ActorMailbox:
    """See Mailbox. Orders of all servers in one; each report goes to the server that asked."""

    def __init__(self, name: str, site: Site, ends: Mapping[str, Any]) -> None:
        self._name = name
        self._site = site
        self._listener = Listener(site)
        self._outlets: dict[str, RemoteSender] = {}
        self._linked: dict[str, bool] = {}
        self.address = self._listener.address
        self.inlets: dict[str, Address] = {}
        for edge, end in ends.items():
            if isinstance(end, RemoteSender):
                self._outlets[edge] = end
            else:
                self._linked[edge] = False
                self.inlets[edge] = end.listen(site, partial(self._on_link, edge))
        self._callers: dict[str, bytes] = {}  # the servers, by what their lines are called
        self._asked: dict[str, tuple[bytes, Submit | Abort]] = {}  # by request
        self._forgotten: deque[str] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        site.bells.add(self._bell)

    @property
    def num_live(self) -> int:
        """How many requests are here. May be asked from any thread."""
        return len(self._asked)

    def forget(self, server: str) -> None:
        """From any thread: a server is gone; its requests are to be aborted."""
        self._forgotten.append(server)
        os.eventfd_write(self._bell, 1)

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox."""
        self._site.bells.wait(None if block else 0)
        orders: list[Order] = []
        if self._bell in self._site.bells.rung:
            os.eventfd_read(self._bell)
            while self._forgotten:
                orders += self._leave(self._callers.pop(self._forgotten.popleft(), b""))
        self._listener.ends()
        for caller, _, parts in self._listener.take():
            for part in parts:
                orders += self._hear(caller, decode(bytearray(part)))
        return orders

    def report(self, reports: list[Report]) -> None:
        """Give each report to the server that asked for it; nobody, if it is gone."""
        letters: dict[bytes, list[Report]] = defaultdict(list)
        for report in reports:
            match report:
                case Told():  # the figures are of the whole worker: for every server
                    for caller in self._callers.values():
                        letters[caller].append(report)
                    continue
                case Output(_, output):
                    request_id, is_last = output.request_id, output.finished
                case AbortDone(_, request_id):
                    is_last = True
            asked = self._asked.get(request_id)
            if asked is None:
                continue
            letters[asked[0]].append(report)
            if is_last:
                del self._asked[request_id]
                log.info("request_left", stage=self._name, request_id=request_id)
        for caller, letter in letters.items():
            self._send(caller, letter)

    def _hear(self, caller: bytes, message: Any) -> list[Order]:
        match message:
            case Submit() | Abort():
                if isinstance(message, Submit):
                    log.info("request_came", stage=self._name, request_id=message.request_id)
                self._asked[message.request_id] = caller, message
                return [message]
            case Credit():
                return [message]
            case Hello(server):
                orders = self._leave(self._callers.pop(server, b""))
                self._callers[server] = caller
                self._send(caller, Ready(dict(self._linked)))
                return orders
            case Reach(edge, address):
                self._outlets[edge].call(self._site, address)
            case Stop():
                self._callers = {s: c for s, c in self._callers.items() if c != caller}
                self._send(caller, Left())
                return self._leave(caller)
        return []

    def _leave(self, caller: bytes) -> list[Order]:
        """Aborts for all that a server has asked for."""
        return [
            Abort(order.face, request_id, order.inlet)
            for request_id, (asker, order) in self._asked.items()
            if asker == caller
        ]

    def _on_link(self, edge: str, is_up: bool) -> None:
        self._linked[edge] = is_up
        for caller in self._callers.values():
            self._send(caller, Linked(edge, is_up))

    def _send(self, caller: bytes, message: Any) -> None:
        self._listener.send(caller, [b"".join(encode(message))])
