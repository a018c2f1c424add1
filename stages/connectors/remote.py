"""The connector between two machines: one ZeroMQ socket straight from worker to worker.

The receiver listens; the sender calls it, says hello, and calls again whenever the connection is
gone. Everything sent in one turn of a worker is one message. ZeroMQ's own thread watches the
connection (heartbeats): an end that hears nothing for `SILENCE_MS` takes the other for lost, and
the sender's lanes with it. Who calls must know the listener's secret; nothing is encrypted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import zmq
import zmq.auth.thread
from zmq.utils.monitor import parse_monitor_message

from stages.connectors.codec import encode
from stages.connectors.contract import Delivery, Mark
from stages.connectors.lanes import LaneReceiver, LaneSender

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import ReadableBuffer

HEARTBEAT_MS = 500
SILENCE_MS = 2000
RETRY_MS = 100
DOMAIN = "nano-omni"
HELLO, DATA = b"H", b"D"


@dataclass(frozen=True, slots=True)
class Address:
    """Where somebody listens, and the secret that callers must know."""

    endpoint: str
    secret: str


class Bells:
    """What a worker waits for: sockets, and descriptors that ring. For one thread."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self.rung: set[Any] = set()

    def add(self, bell: Any) -> None:
        """Wait for this one too."""
        self._poller.register(bell, zmq.POLLIN)

    def remove(self, bell: Any) -> None:
        """Wait for it no longer."""
        self._poller.unregister(bell)
        self.rung.discard(bell)

    def wait(self, timeout_ms: int | None) -> None:
        """Until one rings; `rung` holds those that do. None waits for ever."""
        self.rung = {bell for bell, _ in self._poller.poll(timeout_ms)}


@dataclass(frozen=True, slots=True)
class Site:
    """Where the ends of a worker's edges are: its network address, what wakes it, its secret."""

    ip: str
    secret: str
    bells: Bells = field(default_factory=Bells)
    context: zmq.Context[zmq.Socket[bytes]] = field(default_factory=zmq.Context)

    def guard(self) -> zmq.auth.thread.ThreadAuthenticator:
        """Let in only who knows the secret; to be stopped by whoever called this."""
        guard = zmq.auth.thread.ThreadAuthenticator(self.context)
        guard.start()
        guard.configure_plain(DOMAIN, {DOMAIN: self.secret})
        return guard


class Listener:
    """A socket that many may call. `calls` counts those that are connected, by descriptor."""

    def __init__(self, site: Site) -> None:
        self.socket = site.context.socket(zmq.ROUTER)
        self.socket.plain_server = True
        self.socket.zap_domain = DOMAIN.encode()
        watch_over(self.socket)
        self._ends = Monitor(self.socket, site.bells)
        port = self.socket.bind_to_random_port(f"tcp://{site.ip}")
        self.address = Address(f"tcp://{site.ip}:{port}", site.secret)
        self._bells = site.bells
        site.bells.add(self.socket)

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
            self._bells.remove(self.socket)
            self._ends.close()
            self.socket.close(linger=0)


class Monitor:
    """What happens to the connections of a socket."""

    def __init__(self, socket: zmq.Socket[bytes], bells: Bells) -> None:
        wanted = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        self._watched = socket
        self.socket = socket.get_monitor_socket(wanted)
        self._bells = bells
        bells.add(self.socket)

    def take(self) -> list[tuple[zmq.Event, int]]:
        """All that happened since the last call: the event, and the connection's descriptor."""
        events = []
        while has_more(self.socket):
            told = parse_monitor_message(self.socket.recv_multipart(zmq.NOBLOCK))
            events.append((zmq.Event(told["event"]), int(told["value"])))
        return events

    def close(self) -> None:
        """Watch no longer."""
        self._bells.remove(self.socket)
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


def call(context: zmq.Context[zmq.Socket[bytes]], address: Address) -> zmq.Socket[bytes]:
    """A socket that calls a listener."""
    socket = context.socket(zmq.DEALER)
    socket.plain_username = DOMAIN.encode()
    socket.plain_password = address.secret.encode()
    watch_over(socket)
    return socket


class _Batch:
    """Records that wait for the end of a worker's turn."""

    def __init__(self) -> None:
        self._records: list[bytes] = []

    def push(self, parts: Sequence[ReadableBuffer]) -> None:
        """See Outgoing."""
        self._records.append(b"".join(parts))

    def drain(self) -> list[bytes]:
        """What was pushed since the last time."""
        records, self._records = self._records, []
        return records


class _Call(_Batch):
    """The sender's streams, over a connection that may not be there yet."""

    def __init__(self, site: Site, address: Address) -> None:
        super().__init__()
        self.is_up = False
        self._bells = site.bells
        self._socket = call(site.context, address)
        self._monitor = Monitor(self._socket, site.bells)
        site.bells.add(self._socket)
        self._socket.connect(address.endpoint)

    def changes(self) -> list[bool]:
        """Whether it came up, or was lost, since the last call; in order."""
        return [event is zmq.Event.HANDSHAKE_SUCCEEDED for event, _ in self._monitor.take()]

    def hello(self) -> None:
        """Be the one sender that the receiver listens to."""
        self.is_up = True
        self._socket.send_multipart([HELLO], zmq.NOBLOCK)

    def flush(self) -> None:
        """See Outgoing. Without a connection it is dropped: the lanes are lost anyway."""
        records = self.drain()
        if records and self.is_up:
            self._socket.send_multipart([DATA, *records], zmq.NOBLOCK)

    def take(self) -> list[bytearray]:
        """See Incoming."""
        if self._socket not in self._bells.rung:
            return []
        taken: list[bytearray] = []
        while has_more(self._socket):
            _, *records = self._socket.recv_multipart(zmq.NOBLOCK)
            taken += map(bytearray, records)
        return taken

    def close(self) -> None:
        """Hang up; both streams are this one, so it may come twice."""
        if not self._socket.closed:
            self._bells.remove(self._socket)
            self._monitor.close()
            self._socket.close(linger=0)


class _Nowhere(_Batch):
    """The streams of an end that has not met the other yet."""

    def flush(self) -> None:
        """See Outgoing: dropped."""
        self.drain()

    def take(self) -> list[bytearray]:
        """See Incoming."""
        return []

    def close(self) -> None:
        """See Outgoing."""


class RemoteSender(LaneSender):
    """See Sender. Its lanes are lost from the start until `call` has reached a receiver."""

    def __init__(self, max_chunks: int) -> None:
        nowhere = _Nowhere()
        super().__init__(nowhere, nowhere, max_chunks)
        self._site: Site | None = None
        self._address: Address | None = None
        self._call: _Call | None = None

    def call(self, site: Site, address: Address) -> None:
        """Send to another receiver from now on; the one that it calls already stays."""
        if address != self._address:
            self._site, self._address = site, address
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
                self._call.drain()
                self._call.push(encode(Delivery("", Mark.RESET)))
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
        if self._site is not None and self._address is not None:
            self._data = self._credit = self._call = _Call(self._site, self._address)

    def _lose(self, request_id: str) -> None:
        lane = self._lanes[request_id]
        lane.hung_up = lane.lost = True


class RemoteReceiver(LaneReceiver):
    """See Receiver. Listens to the sender that said hello last."""

    def __init__(self) -> None:
        nowhere = _Nowhere()
        super().__init__(nowhere, nowhere)
        self._line: _Line | None = None

    def listen(self, site: Site, on_link: Callable[[bool], None]) -> Address:
        """Where a sender can call. `on_link` hears when one has come, or is gone."""
        self._data = self._credit = self._line = _Line(site, on_link)
        return self._line.address

    @property
    def is_linked(self) -> bool:
        """Whether there is a sender."""
        return self._line is not None and self._line.peer is not None


class _Line(_Batch):
    """The receiver's streams: from and to the one caller that said hello last."""

    def __init__(self, site: Site, on_link: Callable[[bool], None]) -> None:
        super().__init__()
        self.peer: tuple[bytes, int] | None = None  # its name, and its connection's descriptor
        self._on_link = on_link
        self._listener = Listener(site)
        self.address = self._listener.address

    def flush(self) -> None:
        """See Outgoing. Without a sender it is dropped."""
        records = self.drain()
        if records and self.peer is not None:
            self._listener.send(self.peer[0], [DATA, *records])

    def take(self) -> list[bytearray]:
        """See Incoming."""
        ended = self._listener.ends()
        if self.peer is not None and self.peer[1] in ended:
            self._meet(None)
        taken: list[bytearray] = []
        for caller, descriptor, (kind, *records) in self._listener.take():
            if kind == HELLO:
                self._meet((caller, descriptor))
            elif self.peer is not None and caller == self.peer[0]:
                taken += map(bytearray, records)
        return taken

    def close(self) -> None:
        """Hang up."""
        self._listener.close()

    def _meet(self, peer: tuple[bytes, int] | None) -> None:
        self.peer = peer
        self.drain()
        self._on_link(peer is not None)


@dataclass(frozen=True, slots=True)
class RemoteEdge:
    """An edge by its name; its ends find each other when they are told where (see above)."""

    name: str
    max_chunks: int

    def open_sender(self) -> RemoteSender:
        """See Edge."""
        return RemoteSender(self.max_chunks)

    def open_receiver(self) -> RemoteReceiver:
        """See Edge."""
        return RemoteReceiver()

    def close(self) -> None:
        """See Edge: nothing is held here."""
