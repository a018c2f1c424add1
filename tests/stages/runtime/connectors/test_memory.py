"""The memory connector passes the conformance suite."""

import pytest

from stages.runtime.connectors.memory import MemoryConnector
from tests.stages.runtime.connectors.conformance import *  # noqa: F403


class NotedWakeup:
    """A wakeup that notes each time that it is woken."""

    def __init__(self, name, woken):
        self.wake = lambda: woken.append(name)


@pytest.fixture
def edge():
    woken = []
    edge = MemoryConnector("edge", max_chunks=4)
    edge.woken = woken
    edge.sender = edge.open_sender(NotedWakeup("sender", woken))
    edge.receiver = edge.open_receiver(NotedWakeup("receiver", woken))
    woken.clear()
    yield edge
    edge.close()
