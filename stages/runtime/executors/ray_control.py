"""The control path between a server and a stage worker on Ray, and the server's end of it.

A line is a ZeroMQ socket of its own, watched in the event loop. It carries the orders and reports
of `control.py`, and around them how the two meet and part.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zmq

from stages.runtime.connectors.remote import Monitor, call, has_more
from stages.runtime.connectors.serialization import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.runtime.connectors.contract import Address
    from stages.runtime.worker.edges import Position


@dataclass(frozen=True, slots=True)
class Hello:
    """From a server, first: its positions of the worker, with its edges. The answer is Ready.

    What it asked for under an earlier line is worth nothing.
    """

    server: str
    ports: tuple[Position, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """The answer to Stop: nothing of this server is left here."""


class RayControl:
    """The server's end. `on_lost` is called once, when the worker cannot be reached any more."""

    def __init__(
        self, address: Address, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._socket = call(zmq.Context.instance(), address)
        self._monitor = Monitor(self._socket)
        self._socket.connect(address.endpoint)
        self._watched = [int(each.get(zmq.FD)) for each in (self._socket, self._monitor.socket)]
        self._loop.add_reader(self._watched[0], self._read)
        self._loop.add_reader(self._watched[1], self._look)
        self._loop.call_soon(self._look)

    def send(self, message: Any) -> None:
        """Never waits. After the end it is dropped."""
        if not self._socket.closed:
            self._socket.send(b"".join(encode(message)), zmq.NOBLOCK)
            self._loop.call_soon(self._read)  # sending may have taken the descriptor's signal

    def close(self) -> None:
        """Hang up, once what was sent last had a moment to go out. May come twice."""
        if not self._socket.closed:
            for descriptor in self._watched:
                self._loop.remove_reader(descriptor)
            self._monitor.close()
            self._socket.close(linger=1000)

    def _read(self) -> None:
        while not self._socket.closed and has_more(self._socket):
            self._on_message(decode(bytearray(self._socket.recv(zmq.NOBLOCK))))

    def _look(self) -> None:
        if self._socket.closed:
            return
        if any(event is zmq.Event.DISCONNECTED for event, _ in self._monitor.take()):
            self._read()  # what came before the end
            if not self._socket.closed:
                self.close()
                self._on_lost()
