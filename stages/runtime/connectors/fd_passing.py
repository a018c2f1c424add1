"""Handing an edge in shared memory to a process of this machine that was started by somebody else.

The rings have no names (see `ring.py`), so their descriptors are passed over a socket whose name is
in no file system. A key says which edge is meant. Linux only.
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
    """Where edges are handed in. `name` tells others; only this machine's can use it."""

    def __init__(self) -> None:
        self.name = f"nano-omni-{secrets.token_hex(8)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind(f"\0{self.name}")
        self._socket.listen()
        self._socket.setblocking(False)

    def take(self, key: bytes) -> SharedMemoryEdge | None:
        """The edge that was handed in with `key`, None if it was not. Others are thrown away."""
        while True:
            try:
                caller, _ = self._socket.accept()
            except BlockingIOError:
                return None
            with caller:
                caller.setblocking(False)
                try:
                    told, files, _, _ = socket.recv_fds(caller, _KEY_BYTES, _NUM_FILES)
                except BlockingIOError:
                    continue
            if told == key and len(files) == _NUM_FILES:
                data, credit = (files[0], files[1], DATA_BYTES), (files[2], files[3], CREDIT_BYTES)
                return SharedMemoryEdge("", RingFiles(*data), RingFiles(*credit), max_chunks=0)
            for each in files:
                os.close(each)

    def close(self) -> None:
        """Nothing can be handed in any more."""
        self._socket.close()


def send_edge(door: str, edge: SharedMemoryEdge) -> bytes | None:
    """Give `edge` to whoever has the door; its key, None where that is not on this machine."""
    key = secrets.token_bytes(_KEY_BYTES)
    files = [edge.data.memory, edge.data.bell, edge.credit.memory, edge.credit.bell]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
        caller.setblocking(False)
        try:
            caller.connect(f"\0{door}")
            socket.send_fds(caller, [key], files)
        except OSError:
            return None
    return key
