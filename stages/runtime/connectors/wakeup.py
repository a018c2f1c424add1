"""Where a stage worker runs, as the ends of its edges see it: what wakes it.

How far apart two ends can be decides what rings. Within a process it is a flag, between processes
of a machine a descriptor that becomes readable, between machines a socket (`remote.py`).
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol


class Wakeup(Protocol):
    """See above. Only `ring` may be called from other threads than the worker's."""

    def ring(self) -> None:
        """Wake the worker; nobody, once it is closed."""

    def wait(self, *, block: bool) -> None:
        """Return when something has rung since the last call; at once, unless `block`."""

    def close(self) -> None:
        """Free it; its ends are shut by then."""


class ThreadWakeup:
    """The site of a worker whose neighbours are all in its process."""

    def __init__(self) -> None:
        self._flag = threading.Event()

    def ring(self) -> None:
        """See Wakeup."""
        if not self._flag.is_set():  # then it has not looked yet, and will
            self._flag.set()

    def wait(self, *, block: bool) -> None:
        """See Wakeup."""
        if block:
            self._flag.wait()
        self._flag.clear()

    def close(self) -> None:
        """See Wakeup: nothing is held."""


class PollWakeup:
    """The site of a worker with neighbours in other processes. Linux only.

    What can ring is told to `poller`, a `select.poll()` or, with sockets of ZeroMQ, a `zmq.Poller`.
    """

    def __init__(self, poller: Any) -> None:
        self._poller = poller
        self._own = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_open = True
        self._closing = threading.Lock()  # a descriptor that is closed may be another one's next
        self.rung: set[Any] = set()
        self.add(self._own)

    def add(self, bell: Any) -> None:
        """Wait for this one too."""
        self._poller.register(bell, 1)  # POLLIN, for both

    def remove(self, bell: Any) -> None:
        """Wait for it no longer."""
        self._poller.unregister(bell)
        self.rung.discard(bell)

    def ring(self) -> None:
        """See Wakeup."""
        with self._closing:
            if self._is_open:
                os.eventfd_write(self._own, 1)

    def wait(self, *, block: bool) -> None:
        """See Wakeup. `rung` holds what rings."""
        self.rung = {bell for bell, _ in self._poller.poll(None if block else 0)}
        if self._own in self.rung:
            os.eventfd_read(self._own)

    def close(self) -> None:
        """See Wakeup."""
        with self._closing:
            self._is_open = False
            os.close(self._own)
