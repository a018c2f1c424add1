"""A connection between two sockets that a test can cut: bytes stop, and no socket closes."""

import contextlib
import socket
import threading


class Relay:
    """Passes bytes on between the peers that connect to `endpoint` and `target`, until `cut`."""

    def __init__(self, target):
        self._target = tuple(target.removeprefix("tcp://").rsplit(":", 1))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open = threading.Event()
        self._open.set()
        self._sockets = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """From now on nothing gets through; connections stay as they are."""
        self._open.clear()

    def mend(self):
        """Let everything through again."""
        self._open.set()

    def close(self):
        self._open.set()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                host, port = self._target
                theirs = socket.create_connection((host, int(port)))
                self._sockets += [ours, theirs]
                for one, other in ((ours, theirs), (theirs, ours)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                self._open.wait()
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
