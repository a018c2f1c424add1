"""Hands an edge in shared memory to a process of this machine that somebody else started.

The rings have no names (see `ring.py`), so their descriptors are passed over a socket, whose name
is in no file system. A key says which edge is meant. Linux only.
"""

from __future__ import annotations

import os
import secrets
import socket

from stages.runtime.connectors.ring import RingFiles
from stages.runtime.connectors.shared_memory import CREDIT_BYTES, DATA_BYTES, SharedMemoryEdge

_NUM_FILES = 4
_KEY_BYTES = 32


class EdgeInbox:
    """A socket at which other processes hand in edges. Only this machine's can use its `name`."""

    def __init__(self) -> None:
        self.name = f"nano-omni-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(f"\0{self.name}")
        self._socket.listen()
        self._socket.setblocking(False)

    def take(self, key: bytes) -> SharedMemoryEdge | None:
        """The edge that was handed in with `key`, or None. All others are thrown away."""
        while True:
            try:
                peer, _ = self._socket.accept()
            except BlockingIOError:
                return None
            with peer:
                peer.setblocking(False)
                try:
                    sent_key, files, _, _ = socket.recv_fds(peer, _KEY_BYTES, _NUM_FILES)
                except BlockingIOError:
                    continue
            if sent_key == key and len(files) == _NUM_FILES:
                data, credit = (files[0], files[1], DATA_BYTES), (files[2], files[3], CREDIT_BYTES)
                return SharedMemoryEdge("", RingFiles(*data), RingFiles(*credit), max_chunks=0)
            for file in files:
                os.close(file)

    def close(self) -> None:
        """Accept no more edges."""
        self._socket.close()


def hand_in_edge(inbox_name: str, edge: SharedMemoryEdge) -> bytes | None:
    """Hand `edge` in at an EdgeInbox. Its key, or None if the inbox is not on this machine."""
    key = secrets.token_bytes(_KEY_BYTES)
    data, credit = edge.data, edge.credit
    files = [data.memory_fd, data.wakeup_fd, credit.memory_fd, credit.wakeup_fd]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.setblocking(False)
        try:
            peer.connect(f"\0{inbox_name}")
            socket.send_fds(peer, [key], files)
        except OSError:
            return None
    return key
