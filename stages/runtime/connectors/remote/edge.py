"""A remote edge. Its sender connects to its receiver once the server has told it the address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.runtime.connectors.remote.receiver import RemoteReceiver
from stages.runtime.connectors.remote.sender import RemoteSender
from stages.runtime.connectors.remote.sockets import NetworkWakeup

if TYPE_CHECKING:
    from stages.runtime.connectors.wakeup import Wakeup


@dataclass(frozen=True, slots=True)
class RemoteEdge:
    """An Edge between workers that may be on different machines."""

    name: str
    max_chunks: int

    def open_sender(self, wakeup: Wakeup) -> RemoteSender:
        """The upstream side, not connected yet."""
        assert isinstance(wakeup, NetworkWakeup)
        return RemoteSender(wakeup, self.max_chunks)

    def open_receiver(self, wakeup: Wakeup) -> RemoteReceiver:
        """The downstream side, which listens."""
        assert isinstance(wakeup, NetworkWakeup)
        return RemoteReceiver(wakeup, self.name)

    def close(self) -> None:
        """Nothing to free: the server process holds no part of it."""
