"""The control path between a server and a stage worker on Ray, and the server's end of it.

It is a ZeroMQ socket of its own, watched by the event loop. It carries the orders and reports of
`control.py`, and the messages with which server and worker begin and end.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zmq

from stages.runtime.connectors.remote.sockets import Monitor, has_message, make_peer_socket
from stages.runtime.connectors.serialization import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.runtime.connectors.contract import Address
    from stages.runtime.worker.edges import Position


@dataclass(frozen=True, slots=True)
class Hello:
    """A server's first message: its positions of the worker, with its edges. The answer is Ready.

    It replaces an earlier Hello of the same server, which had another connection.
    """

    server: str
    positions: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class StopDone:
    """The answer to Stop: the worker holds nothing of this server."""


class RayControl:
    """The server's end. `on_lost` is called once, when the worker can no longer be reached."""

    def __init__(
        self, address: Address, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._socket = make_peer_socket(zmq.Context.instance(), address)
        self._monitor = Monitor(self._socket)
        self._socket.connect(address.endpoint)
        self._fds = [int(each.get(zmq.FD)) for each in (self._socket, self._monitor.socket)]
        self._loop.add_reader(self._fds[0], self._read)
        self._loop.add_reader(self._fds[1], self._check_connection)
        self._loop.call_soon(self._check_connection)

    def send(self, message: Any) -> None:
        """Send a message. Never waits. Dropped after `close`."""
        if not self._socket.closed:
            self._socket.send(b"".join(encode(message)), zmq.NOBLOCK)
            self._loop.call_soon(self._read)  # sending may have cleared the descriptor's signal

    def close(self) -> None:
        """Close the connection; ZeroMQ sends what is left for up to 1 s. May be called twice."""
        if not self._socket.closed:
            for fd in self._fds:
                self._loop.remove_reader(fd)
            self._monitor.close()
            self._socket.close(linger=1000)

    def _read(self) -> None:
        while not self._socket.closed and has_message(self._socket):
            self._on_message(decode(bytearray(self._socket.recv(zmq.NOBLOCK))))

    def _check_connection(self) -> None:
        if self._socket.closed:
            return
        if any(event is zmq.Event.DISCONNECTED for event, _ in self._monitor.take()):
            self._read()  # what came before the end
            if not self._socket.closed:
                self.close()
                self._on_lost()
