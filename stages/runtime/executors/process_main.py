"""What runs in a worker's process: the stage and its worker, until it is stopped or left alone.

The process ends itself when the server's process ends, for whatever reason: the kernel then closes
the socket, and a thread that waits for nothing else exits the process. Signals that are meant for
the server are ignored here: the server decides when its workers stop.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.runtime.connectors.frames import make_frame, take_frames
from stages.runtime.connectors.serialization import decode, encode
from stages.runtime.cores import CORES
from stages.runtime.executors.startup import load_stage, reason_of
from stages.runtime.worker.control import Stop
from stages.runtime.worker.edges import WorkerEdges, wakeup_across_processes
from stages.runtime.worker.worker import Worker

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from stages.contract.stage import Stage
    from stages.runtime.connectors.wakeup import PollWakeup
    from stages.runtime.worker.control import Order
    from stages.runtime.worker.edges import Position


@dataclass(frozen=True, slots=True)
class WorkerFailed:
    """The worker raised an exception. This is its last message."""

    reason: str


class ProcessMailbox:
    """A Mailbox whose orders come over the control socket."""

    def __init__(self, sock: socket.socket, wakeup: PollWakeup) -> None:
        self._sock = sock
        self._received = bytearray()
        self._wakeup = wakeup
        wakeup.add(sock.fileno())

    def take(self, *, block: bool) -> list[Order]:
        """All orders that have come. The end of the socket, thus of the server, is a Stop."""
        self._wakeup.wait(block=block)
        if self._sock.fileno() not in self._wakeup.readable:
            return []
        data = self._sock.recv(1 << 20)
        if not data:
            return [Stop()]
        self._received += data
        return [decode(record) for record in take_frames(self._received)]


def run_worker(
    sock: socket.socket,
    make_stage: Callable[[], Stage],
    positions: Sequence[Position],
    ip: str | None,
) -> None:
    """The process's main function. Exits with 1 if the stage or its worker raised.

    With an `ip`, neighbours may be on other machines, which reach this machine at that address.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_when_left_alone, args=(sock.fileno(),), daemon=True).start()

    def send(message: Any) -> None:
        sock.sendall(make_frame(encode(message)))

    try:
        CORES.limit(1)  # the other stages compute in other processes
        stage = load_stage(make_stage)
        wakeup = wakeup_across_processes(ip, send)
        edges = WorkerEdges(wakeup)
        edges.open(positions)
        worker = Worker(stage, positions, edges, ProcessMailbox(sock, wakeup), send)
        send(edges.ready)
        worker.run()
    except Exception as error:  # noqa: BLE001 - the outermost frame of a worker
        traceback.print_exc()
        send(WorkerFailed(reason_of(error)))
        sys.exit(1)


def _exit_when_left_alone(fd: int) -> None:
    """Wait until the other end of the socket is closed. Reads nothing."""
    poll = select.poll()
    poll.register(fd, select.POLLRDHUP)
    poll.poll()
    os._exit(1)
