"""What runs in a worker's process: the stage and its worker, until told to stop or left alone.

Ends itself when the server's process ends, however that ended: the kernel closes the socket, and a
thread that waits for nothing else exits the process. Signals meant for the server are not obeyed
here: the server decides when its workers stop.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.connectors.codec import decode, encode
from stages.cores import CORES
from stages.executors.control import Stop
from stages.executors.launch import bring_up, reason_of
from stages.worker import Worker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from stages.executors.control import Order
    from stages.executors.executor import Port
    from stages.stage import Stage

_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Ready:
    """The stage is loaded and warm."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker raised; this is its last message."""

    reason: str


class ProcessMailbox:
    """See Mailbox. Orders come over the socket; edges ring their descriptors."""

    def __init__(self, sock: socket.socket, bells: Sequence[int]) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._poll = select.poll()
        for fd in (sock.fileno(), *bells):
            self._poll.register(fd, select.POLLIN)

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox. The end of the server is an order to stop."""
        ready = {fd for fd, _ in self._poll.poll(None if block else 0)}
        if self._sock.fileno() not in ready:
            return []
        data = self._sock.recv(1 << 20)
        if not data:
            return [Stop()]
        self._buffer += data
        return list(self._orders())

    def _orders(self) -> Any:
        while len(self._buffer) >= _U32.size:
            end = _U32.size + _U32.unpack_from(self._buffer)[0]
            if len(self._buffer) < end:
                return
            order = self._buffer[_U32.size : end]
            del self._buffer[:end]
            yield decode(order)


def run_worker(sock: socket.socket, make_stage: Callable[[], Stage], ports: Sequence[Port]) -> None:
    """The process's main function. Exits with 1 if the stage or its worker raised."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_when_left_alone, args=(sock.fileno(),), daemon=True).start()
    try:
        _work(sock, make_stage, ports)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a worker
        traceback.print_exc()
        sock.sendall(frame(Failed(reason_of(error))))
        sys.exit(1)


def _work(sock: socket.socket, make_stage: Callable[[], Stage], ports: Sequence[Port]) -> None:
    CORES.limit(1)  # the other stages compute in other processes
    stage = bring_up(make_stage)
    wirings = [port.open() for port in ports]
    ends: list[Any] = [end for w in wirings for end in (*w.inlets, *w.outlets)]
    mailbox = ProcessMailbox(sock, [end.bell for end in ends])
    worker = Worker(stage, wirings, mailbox, lambda reports: sock.sendall(frame(reports)))
    sock.sendall(frame(Ready()))
    worker.run()


def frame(message: Any) -> bytes:
    """A message as it goes over the socket: its length, then the message."""
    parts = [memoryview(part) for part in encode(message)]
    return b"".join([_U32.pack(sum(part.nbytes for part in parts)), *parts])


def _exit_when_left_alone(fd: int) -> None:
    """Wait until the other end of the socket is closed; nothing is read here."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    poll.poll()
    os._exit(1)
