"""What runs in an actor on Ray: a stage and its worker, for all servers that hold a lease on it.

Ray calls are few: to attach, to renew the lease, to detach. Orders and reports go over a socket of
the worker's own (`line.py`), chunks over others. A server whose lease runs out has its requests
aborted; when the last lease is gone the actor ends itself, so that nothing is left of a server that
was killed. A worker that raises takes the process with it, and Ray starts the actor again.
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
from stages.runtime.connectors.remote import Listener, NetworkWakeup
from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.cores import CORES
from stages.runtime.executors.ray_control import Hello, Left
from stages.runtime.executors.startup import bring_up
from stages.runtime.worker.control import (
    Abort,
    AbortDone,
    Connect,
    ConnectionChanged,
    Credit,
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
    """What an actor runs; all servers that share it must mean the same (`shape`).

    `ports` are without edges: these come with each server.
    """

    name: str
    make_stage: Callable[[], Stage]
    ports: tuple[Position, ...]

    @property
    def shape(self) -> str:
        """Everything about it, as text."""
        return repr((self.name, self.make_stage, self.ports))


@dataclass(frozen=True, slots=True)
class Where:
    """Where a worker is, and its line for servers."""

    node_id: str
    line: Address


class StageActor:
    """See above. Loading is the constructor: an actor that answers is loaded and warm."""

    def __init__(self, spec: ActorSpec) -> None:
        self._spec = spec
        self._context = ray.get_runtime_context()
        CORES.limit(1)  # the other stages compute in other processes
        stage = bring_up(spec.make_stage)
        ip: str = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        self._mailbox = ActorMailbox(spec.name, ip)
        self._worker = Worker(
            stage, spec.ports, self._mailbox.ends, self._mailbox, self._mailbox.report
        )
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
        if not self._leases.renew(server):  # the last one just left; who asks again gets another
            ray.actor.exit_actor()  # type: ignore[no-untyped-call]
        return Where(self._context.get_node_id(), self._mailbox.address)

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
        self._is_over = False
        self._changed = threading.Condition()

    def renew(self, server: str, *, known: bool = False) -> bool:
        """From now for LEASE_S, unless all is over; with `known`, only one that has not ended."""
        with self._changed:
            self._end_old()
            if self._is_over or (known and server not in self._until):
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
        """Returns when one has ended; False when none is left, and from then on none is given."""
        with self._changed:
            while self._until and not self._ended:
                self._changed.wait(max(0.0, min(self._until.values()) - self._clock()))
                self._end_old()
            self._is_over = not self._until
            return not self._is_over

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

    def __init__(self, name: str, ip: str) -> None:
        self._name = name
        self._site = NetworkWakeup(ip, self._on_link)
        self._listener = Listener(self._site)
        self.address = self._listener.address
        self.ends = WorkerEdges(self._site)
        self._callers: dict[str, bytes] = {}  # the servers, by what their lines are called
        self._edges: dict[str, set[str]] = {}  # of each server
        self._has_old = False  # edges that may be no server's any more
        self._asked: dict[str, tuple[bytes, Submit | Abort]] = {}  # by request
        self._forgotten: deque[str] = deque()

    @property
    def num_live(self) -> int:
        """How many requests are here. May be asked from any thread."""
        return len(self._asked)

    def forget(self, server: str) -> None:
        """From any thread: a server is gone; its requests are to be aborted."""
        self._forgotten.append(server)
        self._site.ring()

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox."""
        if self._has_old:  # what that server asked for has been aborted by now
            self._has_old = False
            self.ends.keep(set().union(*self._edges.values()))
        self._site.wait(block=block)
        orders: list[Order] = []
        while self._forgotten:
            orders += self._leave(self._forgotten.popleft())
        self._listener.ends()
        for caller, _, parts in self._listener.take():
            for part in parts:
                orders += self._hear(caller, decode(bytearray(part)))
        return orders

    def report(self, reports: list[Report]) -> None:
        """Give each report to the server that asked for it; nobody, if it is gone."""
        letters: dict[bytes, list[Report]] = defaultdict(list)
        for report in reports:
            for caller, part in self._parts(report):
                letters[caller].append(part)
        for caller, letter in letters.items():
            self._send(caller, letter)

    def _parts(self, report: Report) -> Iterable[tuple[bytes, Report]]:
        match report:
            case StepReport():
                return report.by_server(self._line_of).items()
            case ConnectionChanged(name):
                lines = [self._callers[each] for each, has in self._edges.items() if name in has]
            case Output(_, output):
                lines = self._asker(output.request_id, is_last=output.finished)
            case AbortDone(_, request_id):
                lines = self._asker(request_id, is_last=True)
        return [(line, report) for line in lines]

    def _line_of(self, request_id: str) -> bytes | None:
        asked = self._asked.get(request_id)
        return None if asked is None else asked[0]

    def _asker(self, request_id: str, *, is_last: bool) -> list[bytes]:
        """Who asked for a request; none if it is over."""
        asked = self._asked.get(request_id)
        if asked is None:
            return []
        if is_last:
            del self._asked[request_id]
            log.info("request_left", stage=self._name, request_id=request_id)
        return [asked[0]]

    def _hear(self, caller: bytes, message: Any) -> list[Order]:
        match message:
            case Hello(server, ports):
                self._meet(caller, server, ports)
            case Stop():
                self._send(caller, Left())
                return self._leave(self._server(caller))
            case Submit() | Abort() if self._server(caller):
                if isinstance(message, Submit):
                    log.info("request_came", stage=self._name, request_id=message.request_id)
                self._asked[message.request_id] = caller, message
                return [message]
            case Credit() | Connect() if self._server(caller):
                return [message]
        return []

    def _server(self, caller: bytes) -> str:
        """Who calls; nobody whose lease has ended."""
        return next((server for server, line in self._callers.items() if line == caller), "")

    def _meet(self, caller: bytes, server: str, ports: tuple[Position, ...]) -> None:
        """A server has come, with its edges; those between actors may be there already."""
        self.ends.open(ports)
        self._callers[server] = caller
        self._edges[server] = {
            edge.name for port in ports for edge in (*port.inlets, *port.outlets)
        }
        self._send(caller, self.ends.ready)

    def _leave(self, server: str) -> list[Order]:
        """A server is gone: aborts for all that it has asked for."""
        self._edges.pop(server, None)
        self._has_old = True
        caller = self._callers.pop(server, b"")
        return [
            Abort(order.face, request_id, order.inlet)
            for request_id, (asker, order) in self._asked.items()
            if asker == caller
        ]

    def _on_link(self, edge: str, is_up: bool) -> None:
        self.report([ConnectionChanged(edge, is_up)])

    def _send(self, caller: bytes, message: Any) -> None:
        self._listener.send(caller, [b"".join(encode(message))])
