"""What wakes a stage worker that waits: an order of the server, or something new on an edge.

How far apart two workers can be decides how one wakes the other. Within a process it is a flag,
between processes of a machine an eventfd, between machines a socket (`remote/sockets.py`).
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol


class Wakeup(Protocol):
    """Wakes one worker. Only `wake` may be called from threads other than the worker's."""

    def wake(self) -> None:
        """Wake the worker. Does nothing after `close`."""

    def wait(self, *, block: bool) -> None:
        """With `block`, wait for a wake-up since the last call. Without, only take note of it."""

    def close(self) -> None:
        """Free it. The edges that use it are closed by then."""


class ThreadWakeup:
    """Wakes a worker whose neighbours are all in its process, with a flag."""

    def __init__(self) -> None:
        self._flag = threading.Event()

    def wake(self) -> None:
        """Set the flag, if the worker has taken note of the last time."""
        if not self._flag.is_set():
            self._flag.set()

    def wait(self, *, block: bool) -> None:
        """Wait for the flag if asked to, then clear it."""
        if block:
            self._flag.wait()
        self._flag.clear()

    def close(self) -> None:
        """Nothing to free."""


class PollWakeup:
    """Wakes a worker with neighbours in other processes: waits for descriptors. Linux only.

    `poller` is a `select.poll()` or, with ZeroMQ sockets, a `zmq.Poller`. `readable` holds the
    descriptors and sockets that the last `wait` found readable.
    """

    def __init__(self, poller: Any) -> None:
        self._poller = poller
        self._wakeup_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._is_open = True
        self._closing = threading.Lock()  # the number of a closed descriptor may be used again
        self.readable: set[Any] = set()
        self.add(self._wakeup_fd)

    def add(self, source: Any) -> None:
        """Wait for this descriptor or socket too."""
        self._poller.register(source, 1)  # POLLIN, for both

    def remove(self, source: Any) -> None:
        """Wait for this descriptor or socket no longer."""
        self._poller.unregister(source)
        self.readable.discard(source)

    def wake(self) -> None:
        """Make the worker's own descriptor readable."""
        with self._closing:
            if self._is_open:
                os.eventfd_write(self._wakeup_fd, 1)

    def wait(self, *, block: bool) -> None:
        """Set `readable`. With `block`, wait until it is not empty."""
        self.readable = {source for source, _ in self._poller.poll(None if block else 0)}
        if self._wakeup_fd in self.readable:
            os.eventfd_read(self._wakeup_fd)

    def close(self) -> None:
        """Close the worker's own descriptor."""
        with self._closing:
            self._is_open = False
            os.close(self._wakeup_fd)
