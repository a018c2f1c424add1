"""The ZeroMQ sockets of a worker that may have peers on other machines.

ZeroMQ's own thread watches each connection with heartbeats: a socket that hears nothing for
`SILENCE_MS` takes its peer for lost. A peer must know the listener's secret to connect. Nothing is
encrypted.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import zmq
import zmq.auth.thread
from zmq.utils.monitor import parse_monitor_message

from stages.runtime.connectors.contract import Address
from stages.runtime.connectors.wakeup import PollWakeup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import ReadableBuffer

HEARTBEAT_MS = 500
SILENCE_MS = 2000
RETRY_MS = 100
USER = "nano-omni"  # of ZeroMQ's PLAIN mechanism; the password is the secret


class NetworkWakeup(PollWakeup):
    """Wakes a worker with neighbours that may be on other machines.

    `secret` is new each time; peers must know it to connect. `on_connection` is called in the
    worker's thread with the name of an edge into it, when that edge's sender has connected, or is
    gone.
    """

    def __init__(self, ip: str, on_connection: Callable[[str, bool], None]) -> None:
        super().__init__(zmq.Poller())
        self.ip = ip
        self.on_connection = on_connection
        self.secret = secrets.token_hex(16)
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._authenticator = zmq.auth.thread.ThreadAuthenticator(self.context)
        self._authenticator.start()
        self._authenticator.configure_plain(USER, {USER: self.secret})

    def close(self) -> None:
        """Close all sockets, too."""
        self._authenticator.stop()
        self.context.destroy(linger=0)
        super().close()


class Listener:
    """A socket that many peers may connect to."""

    def __init__(self, wakeup: NetworkWakeup) -> None:
        self.socket = wakeup.context.socket(zmq.ROUTER)
        self.socket.plain_server = True
        self.socket.zap_domain = USER.encode()
        _set_heartbeat(self.socket)
        self._monitor = Monitor(self.socket)
        port = self.socket.bind_to_random_port(f"tcp://{wakeup.ip}")
        self.address = Address(f"tcp://{wakeup.ip}:{port}", wakeup.secret)
        self._wakeup = wakeup
        for socket in (self.socket, self._monitor.socket):
            wakeup.add(socket)

    def take_disconnected(self) -> list[int]:
        """The descriptors of connections that ended since the last call."""
        return [fd for event, fd in self._monitor.take() if event is zmq.Event.DISCONNECTED]

    def take(self) -> list[tuple[bytes, int, list[bytes]]]:
        """All messages that have come: the peer's id, its connection's descriptor, the parts."""
        if self.socket not in self._wakeup.readable:
            return []
        messages = []
        while has_message(self.socket):
            frames = self.socket.recv_multipart(zmq.NOBLOCK, copy=False)
            peer, *parts = (bytes(frame.buffer) for frame in frames)
            messages.append((peer, int(frames[0].get(zmq.SRCFD)), parts))
        return messages

    def send(self, peer: bytes, parts: Sequence[ReadableBuffer]) -> None:
        """Send to a peer that has connected. Dropped if the peer is gone."""
        self.socket.send_multipart([peer, *parts], zmq.NOBLOCK)

    def close(self) -> None:
        """Close all connections. May be called twice."""
        if not self.socket.closed:
            for socket in (self.socket, self._monitor.socket):
                self._wakeup.remove(socket)
            self._monitor.close()
            self.socket.close(linger=0)


class Monitor:
    """Tells when connections of a socket come up and end."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        events = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
        self._monitored = socket
        self.socket = socket.get_monitor_socket(events)

    def take(self) -> list[tuple[zmq.Event, int]]:
        """All events since the last call, each with its connection's descriptor."""
        events = []
        while has_message(self.socket):
            event = parse_monitor_message(self.socket.recv_multipart(zmq.NOBLOCK))
            events.append((zmq.Event(event["event"]), int(event["value"])))
        return events

    def close(self) -> None:
        """Stop monitoring."""
        self._monitored.disable_monitor()
        self.socket.close(linger=0)


def has_message(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message can be received now."""
    return bool(int(socket.get(zmq.EVENTS)) & zmq.POLLIN)


def make_peer_socket(
    context: zmq.Context[zmq.Socket[bytes]], address: Address
) -> zmq.Socket[bytes]:
    """A socket that may connect to the listener at `address`. It is not connected yet."""
    socket = context.socket(zmq.DEALER)
    socket.plain_username = USER.encode()
    socket.plain_password = address.secret.encode()
    _set_heartbeat(socket)
    return socket


def _set_heartbeat(socket: zmq.Socket[bytes]) -> None:
    """Let ZeroMQ notice a silent peer. Credit bounds what is under way, so the socket does not."""
    socket.heartbeat_ivl = HEARTBEAT_MS
    socket.heartbeat_timeout = SILENCE_MS
    socket.connect_timeout = SILENCE_MS
    socket.reconnect_ivl = RETRY_MS
    socket.set_hwm(0)
    socket.linger = 0  # a process that ends does not wait for peers
