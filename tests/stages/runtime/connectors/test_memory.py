"""The memory connector passes the conformance suite."""

import pytest

from stages.runtime.connectors.memory import MemoryConnector
from tests.stages.runtime.connectors.conformance import *  # noqa: F403


class Noted:
    """A site that notes each time that it is rung."""

    def __init__(self, name, rung):
        self.ring = lambda: rung.append(name)


@pytest.fixture
def edge():
    rung = []
    edge = MemoryConnector("edge", max_chunks=4)
    edge.rung = rung
    edge.sender = edge.open_sender(Noted("sender", rung))
    edge.receiver = edge.open_receiver(Noted("receiver", rung))
    rung.clear()
    yield edge
    edge.close()
