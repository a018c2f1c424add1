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

from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.cores import CORES
from stages.runtime.executors.startup import bring_up, reason_of
from stages.runtime.worker.control import Stop
from stages.runtime.worker.edges import WorkerEdges, wakeup_across_processes
from stages.runtime.worker.worker import Worker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from stages.contract.stage import Stage
    from stages.runtime.connectors.wakeup import PollWakeup
    from stages.runtime.worker.control import Order, Report
    from stages.runtime.worker.edges import Position

_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """The worker raised; this is its last message."""

    reason: str


class ProcessMailbox:
    """See Mailbox. Orders come over the socket; edges ring their descriptors."""

    def __init__(self, sock: socket.socket, site: PollWakeup) -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._site = site
        site.add(sock.fileno())

    def take(self, *, block: bool) -> list[Order]:
        """See Mailbox. The end of the server is an order to stop."""
        self._site.wait(block=block)
        if self._sock.fileno() not in self._site.rung:
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


def run_worker(
    sock: socket.socket,
    make_stage: Callable[[], Stage],
    ports: Sequence[Position],
    ip: str | None,
) -> None:
    """The process's main function. Exits with 1 if the stage or its worker raised.

    With an `ip`, neighbours may be on other machines, and reach this one there.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_when_left_alone, args=(sock.fileno(),), daemon=True).start()
    try:
        _work(sock, make_stage, ports, ip)
    except Exception as error:  # noqa: BLE001 - the outermost frame of a worker
        traceback.print_exc()
        sock.sendall(frame(WorkerFailed(reason_of(error))))
        sys.exit(1)


def _work(
    sock: socket.socket,
    make_stage: Callable[[], Stage],
    ports: Sequence[Position],
    ip: str | None,
) -> None:
    CORES.limit(1)  # the other stages compute in other processes
    stage = bring_up(make_stage)

    def report(reports: list[Report]) -> None:
        sock.sendall(frame(reports))

    site = wakeup_across_processes(ip, report)
    ends = WorkerEdges(site)
    ends.open(ports)
    worker = Worker(stage, ports, ends, ProcessMailbox(sock, site), report)
    sock.sendall(frame(ends.ready))
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
