"""The receiver of a remote edge: listens, and takes chunks from the sender that said hello last."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from stages.runtime.connectors.fd_passing import EdgeInbox
from stages.runtime.connectors.lanes import LaneReceiver
from stages.runtime.connectors.remote.sockets import Listener
from stages.runtime.connectors.remote.streams import HELLO, EdgeRings, RemoteStreams

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.runtime.connectors.remote.sockets import NetworkWakeup


class ReceiverStreams(RemoteStreams):
    """The receiver's streams, from and to the one peer that said hello last."""

    def __init__(self, wakeup: NetworkWakeup, on_connection: Callable[[bool], None]) -> None:
        super().__init__()
        self.peer: tuple[bytes, int] | None = None  # its id, and its connection's descriptor
        self._on_connection = on_connection
        self._wakeup = wakeup
        self._listener = Listener(wakeup)
        self._edge_inbox = EdgeInbox() if sys.platform == "linux" else None
        inbox_name = self._edge_inbox.name if self._edge_inbox is not None else ""
        self.address = replace(self._listener.address, edge_inbox=inbox_name)

    def close(self) -> None:
        """Close all connections and the rings. May be called twice."""
        super().close()
        self._listener.close()
        if self._edge_inbox is not None:
            self._edge_inbox.close()

    def _send(self, parts: list[bytes]) -> None:
        if self.peer is not None:
            self._listener.send(self.peer[0], parts)

    def _receive(self) -> list[bytearray]:
        disconnected = self._listener.take_disconnected()
        if self.peer is not None and self.peer[1] in disconnected:
            self._change_peer(None, b"")
        received: list[bytearray] = []
        for peer, fd, (kind, *records) in self._listener.take():
            if kind == HELLO:
                received.clear()  # what the peer before has sent
                self._change_peer((peer, fd), records[0])
            elif self.peer is not None and peer == self.peer[0]:
                received += map(bytearray, records)
        return received

    def _change_peer(self, peer: tuple[bytes, int] | None, key: bytes) -> None:
        """From now on take from `peer`, through the rings that it handed in with `key`, if any."""
        edge = self._edge_inbox.take(key) if key and self._edge_inbox is not None else None
        self.peer = peer
        self.restart(EdgeRings(edge, self._wakeup, is_sender=False) if edge is not None else None)
        self._on_connection(peer is not None)


class RemoteReceiver(LaneReceiver):
    """A ListeningReceiver over ZeroMQ."""

    def __init__(self, wakeup: NetworkWakeup, name: str) -> None:
        self._streams = ReceiverStreams(wakeup, partial(wakeup.on_connection, name))
        super().__init__(self._streams, self._streams)
        self.address = self._streams.address

    @property
    def is_connected(self) -> bool:
        """Whether a sender is connected."""
        return self._streams.peer is not None
