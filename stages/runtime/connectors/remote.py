"""The connector between workers that may be on different machines: a ZeroMQ socket for each two.

The receiver listens; the sender calls it, says hello, and calls again whenever the connection is
gone. Everything sent in one turn of a worker is one message. Where both are on one machine, the
sender hands rings in shared memory over with its hello, and chunks and credit go through these; the
connection then only tells that the other end is there. ZeroMQ's own thread watches the
connection (heartbeats): an end that hears nothing for `SILENCE_MS` takes the other for lost, and
the sender's lanes with it. Who calls must know the listener's secret; nothing is encrypted.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import zmq
import zmq.auth.thread
from zmq.utils.monitor import parse_monitor_message

from stages.runtime.connectors.contract import Address, Delivery, LaneSignal
from stages.runtime.connectors.fd_passing import EdgeInbox, send_edge
from stages.runtime.connectors.lanes import LaneReceiver, LaneSender
from stages.runtime.connectors.ring import RingReader, RingWriter
from stages.runtime.connectors.serialization import encode
from stages.runtime.connectors.shared_memory import SharedMemoryEdge
from stages.runtime.connectors.wakeup import PollWakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import ReadableBuffer

    from stages.runtime.connectors.wakeup import Wakeup

HEARTBEAT_MS = 500
SILENCE_MS = 2000
RETRY_MS = 100
DOMAIN = "nano-omni"
HELLO, DATA = b"H", b"D"


class NetworkWakeup(PollWakeup):
    """The site of a worker with neighbours that may be on other machines.

    Whoever calls it must know its secret, which is new each time. `on_link` hears, in the worker's
    thread, when the sender of an edge into it has come, or is gone.
    """

    def __init__(self, ip: str, on_link: Callable[[str, bool], None]) -> None:
        super().__init__(zmq.Poller())
        self.ip = ip
        self.on_link = on_link
        self.secret = secrets.token_hex(16)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._guard = zmq.auth.thread.ThreadAuthenticator(self.context)
        self._guard.start()
        self._guard.configure_plain(DOMAIN, {DOMAIN: self.secret})

    def close(self) -> None:
        """See Wakeup."""
        self._guard.stop()
        self.context.destroy(linger=0)
        super().close()


class Listener:
    """A socket that many may call. `calls` counts those that are connected, by descriptor."""

    def __init__(self, site: NetworkWakeup) -> None:
        self.socket = site.context.socket(zmq.ROUTER)
        self.socket.plain_server = True
        self.socket.zap_domain = DOMAIN.encode()
        watch_over(self.socket)
        self._ends = Monitor(self.socket)
        port = self.socket.bind_to_random_port(f"tcp://{site.ip}")
        self.address = Address(f"tcp://{site.ip}:{port}", site.secret)
        self._bells = site
        for each in (self.socket, self._ends.socket):
            site.add(each)

    def ends(self) -> list[int]:
        """The descriptors of connections that ended since the last call."""
        return [value for event, value in self._ends.take() if event is zmq.Event.DISCONNECTED]

    def take(self) -> list[tuple[bytes, int, list[bytes]]]:
        """All messages that are there: who sent it, over which descriptor, and its parts."""
        if self.socket not in self._bells.rung:
            return []
        taken = []
        while has_more(self.socket):
            frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            caller, *parts = (bytes(frame.buffer) for frame in frames)
            taken.append((caller, int(frames[0].get(zmq.SRCFD)), parts))
        return taken

    def send(self, caller: bytes, parts: Sequence[ReadableBuffer]) -> None:
        """To one that has called; dropped if it is gone."""
        self.socket.send_multipart([caller, *parts], zmq.NOBLOCK)

    def close(self) -> None:
        """Hang up on everybody. May come twice."""
        if not self.socket.closed:
            for each in (self.socket, self._ends.socket):
                self._bells.remove(each)
            self._ends.close()
            self.socket.close(linger=0)


class Monitor:
    """What happens to the connections of a socket."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        wanted = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        self._watched = socket
        self.socket = socket.get_monitor_socket(wanted)

    def take(self) -> list[tuple[zmq.Event, int]]:
        """All that happened since the last call: the event, and the connection's descriptor."""
        events = []
        while has_more(self.socket):
            told = parse_monitor_message(self.socket.recv_multipart(zmq.NOBLOCK))
            events.append((zmq.Event(told["event"]), int(told["value"])))
        return events

    def close(self) -> None:
        """Watch no longer."""
        self._watched.disable_monitor()
        self.socket.close(linger=0)


def has_more(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message is there."""
    return bool(int(socket.get(zmq.EVENTS)) & zmq.POLLIN)


def watch_over(socket: zmq.Socket[bytes]) -> None:
    """Let ZeroMQ notice an end that is silent. Credit bounds what is under way, not the socket."""
    socket.heartbeat_ivl = HEARTBEAT_MS
    socket.heartbeat_timeout = SILENCE_MS
    socket.connect_timeout = SILENCE_MS
    socket.reconnect_ivl = RETRY_MS
    socket.set_hwm(0)
    socket.linger = 0  # a process that ends waits for nobody


def call(context: zmq.Context[zmq.Socket[bytes]], address: Address) -> zmq.Socket[bytes]:
    """A socket that calls a listener."""
    socket = context.socket(zmq.DEALER)
    socket.plain_username = DOMAIN.encode()
    socket.plain_password = address.secret.encode()
    watch_over(socket)
    return socket


class _Rings:
    """One end's rings of an edge in shared memory, once it was handed over."""

    def __init__(self, edge: SharedMemoryEdge, bells: PollWakeup, *, sends: bool) -> None:
        out, into = (edge.data, edge.credit) if sends else (edge.credit, edge.data)
        self.out = RingWriter(out)
        self.into = RingReader(into, out.bell)
        self._edge = edge
        self._bells = bells
        self._bell = into.bell
        bells.add(self._bell)

    def close(self) -> None:
        """Free this end."""
        self._bells.remove(self._bell)
        self.out.close()
        self.into.close()
        self._edge.close()


class _Streams:
    """Both streams of an end: records wait for the end of a turn, or go into the rings."""

    def __init__(self) -> None:
        self._records: list[bytes] = []
        self.rings: _Rings | None = None

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """See Outgoing."""
        if self.rings is not None:
            self.rings.out.push(parts)
        else:
            self._records.append(b"".join(parts))

    def flush(self) -> None:
        """See Outgoing. Without a connection it is dropped: the lanes are lost anyway."""
        if self.rings is not None:
            self.rings.out.flush()
        elif self._records:
            records, self._records = self._records, []
            self._send([DATA, *records])

    def take(self) -> list[bytearray]:
        """See Incoming."""
        records = self._receive()
        return records + self.rings.into.take() if self.rings is not None else records

    def close(self) -> None:
        """Free this end; both streams are this one, so it may come twice."""
        self.begin_anew(None)

    def begin_anew(self, rings: _Rings | None) -> None:
        """What waits is worth nothing; from now on use `rings`."""
        self._records.clear()
        if self.rings is not None:
            self.rings.close()
        self.rings = rings

    def _send(self, parts: list[bytes]) -> None:
        """Dropped here: an end that has not met the other yet."""

    def _receive(self) -> list[bytearray]:
        """What came over the connection."""
        return []


class _Call(_Streams):
    """The sender's streams, over a connection that may not be there yet."""

    def __init__(self, site: NetworkWakeup, address: Address) -> None:
        super().__init__()
        self.is_up = False
        self._bells = site
        self._door = address.door
        self._socket = call(site.context, address)
        self._monitor = Monitor(self._socket)
        for each in (self._socket, self._monitor.socket):
            site.add(each)
        self._socket.connect(address.endpoint)

    def changes(self) -> list[bool]:
        """Whether it came up, or was lost, since the last call; in order."""
        return [event is zmq.Event.HANDSHAKE_SUCCEEDED for event, _ in self._monitor.take()]

    def hello(self) -> None:
        """Be the one sender that the receiver listens to; over rings, if it is on this machine."""
        self.is_up = True
        key = None
        if self._door:
            edge = SharedMemoryEdge.create("handed over")
            key = send_edge(self._door, edge)
            if key is None:
                edge.close()
        self.begin_anew(_Rings(edge, self._bells, sends=True) if key is not None else None)
        self._socket.send_multipart([HELLO, key or b""], zmq.NOBLOCK)

    def close(self) -> None:
        """Hang up. May come twice."""
        super().close()
        if not self._socket.closed:
            for each in (self._socket, self._monitor.socket):
                self._bells.remove(each)
            self._monitor.close()
            self._socket.close(linger=0)

    def _send(self, parts: list[bytes]) -> None:
        if self.is_up:
            self._socket.send_multipart(parts, zmq.NOBLOCK)

    def _receive(self) -> list[bytearray]:
        if self._socket not in self._bells.rung:
            return []
        taken: list[bytearray] = []
        while has_more(self._socket):
            _, *records = self._socket.recv_multipart(zmq.NOBLOCK)
            taken += map(bytearray, records)
        return taken


class RemoteSender(LaneSender):
    """See Sender and ConnectingSender."""

    def __init__(self, site: NetworkWakeup, max_chunks: int) -> None:
        nowhere = _Streams()
        super().__init__(nowhere, nowhere, max_chunks)
        self._site = site
        self._address: Address | None = None
        self._call: _Call | None = None

    def call(self, address: Address) -> None:
        """See ConnectingSender."""
        if address != self._address:
            self._address = address
            self._call_anew()

    def open(self, request_id: str) -> None:
        """See Sender."""
        super().open(request_id)
        if self._call is None or not self._call.is_up:
            self._lose(request_id)

    def changed(self) -> list[str]:
        """See Sender."""
        if self._call is None:
            return []
        lost: set[str] = set()
        for came_up in self._call.changes():
            if came_up:
                self._call.hello()
                self._call.push(encode(Delivery("", LaneSignal.RESET)))
                self._call.flush()
            elif self._call.is_up:
                lost |= set(self._lanes)
                self._call_anew()
                break
        return [*super().changed(), *lost]

    def shut(self) -> None:
        """Free this end."""
        super().shut()
        self._call = None

    def _call_anew(self) -> None:
        """With a new socket: the old one would still deliver what it holds."""
        if self._call is not None:
            self._call.close()
        for request_id in self._lanes:
            self._lose(request_id)
        if self._address is not None:
            self._data = self._credit = self._call = _Call(self._site, self._address)

    def _lose(self, request_id: str) -> None:
        lane = self._lanes[request_id]
        lane.hung_up = lane.lost = True


class RemoteReceiver(LaneReceiver):
    """See Receiver and ListeningReceiver. Listens to the sender that said hello last."""

    def __init__(self, site: NetworkWakeup, name: str) -> None:
        self._line = _Line(site, partial(site.on_link, name))
        super().__init__(self._line, self._line)
        self.address = self._line.address

    @property
    def is_linked(self) -> bool:
        """See ListeningReceiver."""
        return self._line.peer is not None


class _Line(_Streams):
    """The receiver's streams: from and to the one caller that said hello last."""

    def __init__(self, site: NetworkWakeup, on_link: Callable[[bool], None]) -> None:
        super().__init__()
        self.peer: tuple[bytes, int] | None = None  # its name, and its connection's descriptor
        self._on_link = on_link
        self._bells = site
        self._listener = Listener(site)
        self._door = EdgeInbox() if sys.platform == "linux" else None
        door = self._door.name if self._door is not None else ""
        self.address = replace(self._listener.address, door=door)

    def close(self) -> None:
        """Hang up. May come twice."""
        super().close()
        self._listener.close()
        if self._door is not None:
            self._door.close()

    def _send(self, parts: list[bytes]) -> None:
        if self.peer is not None:
            self._listener.send(self.peer[0], parts)

    def _receive(self) -> list[bytearray]:
        ended = self._listener.ends()
        if self.peer is not None and self.peer[1] in ended:
            self._meet(None, b"")
        taken: list[bytearray] = []
        for caller, descriptor, (kind, *records) in self._listener.take():
            if kind == HELLO:
                taken.clear()  # of the one before
                self._meet((caller, descriptor), records[0])
            elif self.peer is not None and caller == self.peer[0]:
                taken += map(bytearray, records)
        return taken

    def _meet(self, peer: tuple[bytes, int] | None, key: bytes) -> None:
        edge = self._door.take(key) if key and self._door is not None else None
        self.peer = peer
        self.begin_anew(_Rings(edge, self._bells, sends=False) if edge is not None else None)
        self._on_link(peer is not None)


@dataclass(frozen=True, slots=True)
class RemoteEdge:
    """An edge by its name; its ends find each other when they are told where (see above)."""

    name: str
    max_chunks: int

    def open_sender(self, site: Wakeup) -> RemoteSender:
        """See Edge."""
        assert isinstance(site, NetworkWakeup)
        return RemoteSender(site, self.max_chunks)

    def open_receiver(self, site: Wakeup) -> RemoteReceiver:
        """See Edge."""
        assert isinstance(site, NetworkWakeup)
        return RemoteReceiver(site, self.name)

    def close(self) -> None:
        """See Edge: nothing is held here."""
