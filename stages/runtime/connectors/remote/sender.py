"""The sender of a remote edge: connects to the receiver, and again whenever the connection is lost.

All lanes are lost with the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import zmq

from stages.runtime.connectors.contract import Delivery, LaneSignal
from stages.runtime.connectors.fd_passing import hand_in_edge
from stages.runtime.connectors.lanes import LaneSender
from stages.runtime.connectors.remote.sockets import Monitor, has_message, make_peer_socket
from stages.runtime.connectors.remote.streams import HELLO, EdgeRings, RemoteStreams
from stages.runtime.connectors.serialization import encode
from stages.runtime.connectors.shared_memory import SharedMemoryEdge

if TYPE_CHECKING:
    from stages.runtime.connectors.contract import Address
    from stages.runtime.connectors.remote.sockets import NetworkWakeup


class SenderStreams(RemoteStreams):
    """The sender's streams, over a connection that may not be up yet."""

    def __init__(self, wakeup: NetworkWakeup, address: Address) -> None:
        super().__init__()
        self.is_up = False
        self._wakeup = wakeup
        self._edge_inbox = address.edge_inbox
        self._socket = make_peer_socket(wakeup.context, address)
        self._monitor = Monitor(self._socket)
        for socket in (self._socket, self._monitor.socket):
            wakeup.add(socket)
        self._socket.connect(address.endpoint)

    def take_changes(self) -> list[bool]:
        """Whether the connection came up or was lost since the last call, in order."""
        return [event is zmq.Event.HANDSHAKE_SUCCEEDED for event, _ in self._monitor.take()]

    def say_hello(self) -> None:
        """Become the sender that the receiver listens to; over rings, if it is on this machine."""
        self.is_up = True
        key = None
        if self._edge_inbox:
            edge = SharedMemoryEdge.create("handed over")
            key = hand_in_edge(self._edge_inbox, edge)
            if key is None:
                edge.close()
        self.restart(EdgeRings(edge, self._wakeup, is_sender=True) if key is not None else None)
        self._socket.send_multipart([HELLO, key or b""], zmq.NOBLOCK)

    def close(self) -> None:
        """Close the connection and the rings. May be called twice."""
        super().close()
        if not self._socket.closed:
            for socket in (self._socket, self._monitor.socket):
                self._wakeup.remove(socket)
            self._monitor.close()
            self._socket.close(linger=0)

    def _send(self, parts: list[bytes]) -> None:
        if self.is_up:
            self._socket.send_multipart(parts, zmq.NOBLOCK)

    def _receive(self) -> list[bytearray]:
        if self._socket not in self._wakeup.readable:
            return []
        received: list[bytearray] = []
        while has_message(self._socket):
            _, *records = self._socket.recv_multipart(zmq.NOBLOCK)
            received += map(bytearray, records)
        return received


class RemoteSender(LaneSender):
    """A ConnectingSender over ZeroMQ."""

    def __init__(self, wakeup: NetworkWakeup, max_chunks: int) -> None:
        unconnected = RemoteStreams()
        super().__init__(unconnected, unconnected, max_chunks)
        self._wakeup = wakeup
        self._address: Address | None = None
        self._streams: SenderStreams | None = None

    @property
    def is_connected(self) -> bool:
        """Whether the receiver is connected, so that new lanes are not lost."""
        return self._streams is not None and self._streams.is_up

    def connect(self, address: Address) -> None:
        """Connect to the receiver at this address, unless that is where it connects already."""
        if address != self._address:
            self._address = address
            self._reconnect()

    def open_lane(self, request_id: str) -> None:
        """Begin a lane. It is lost at once if the receiver is not connected."""
        super().open_lane(request_id)
        if self._streams is None or not self._streams.is_up:
            self._lose(request_id)

    def changed(self) -> list[str]:
        """Follow what happened to the connection, and return the lanes that changed."""
        if self._streams is None:
            return []
        lost: set[str] = set()
        for is_up in self._streams.take_changes():
            if is_up:
                self._streams.say_hello()
                self._streams.push(encode(Delivery("", LaneSignal.RESET)))
                self._streams.flush()
            elif self._streams.is_up:
                lost |= set(self._lanes)
                self._reconnect()
                break
        return [*super().changed(), *lost]

    def close(self) -> None:
        """Close the connection, and free the streams."""
        super().close()
        self._streams = None

    def _reconnect(self) -> None:
        """Connect with a new socket: the old one would still deliver what it holds."""
        if self._streams is not None:
            self._streams.close()
        for request_id in self._lanes:
            self._lose(request_id)
        if self._address is not None:
            self._streams = SenderStreams(self._wakeup, self._address)
            self._data = self._credit = self._streams

    def _lose(self, request_id: str) -> None:
        lane = self._lanes[request_id]
        lane.is_cancelled = lane.is_lost = True
