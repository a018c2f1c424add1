"""The memory connector passes the conformance suite."""

import pytest

from stages.runtime.connectors.contract import LaneSignal
from stages.runtime.connectors.memory import MemoryConnector
from tests.stages.runtime.connectors.conformance import *  # noqa: F403
from tests.stages.runtime.connectors.conformance import CHUNKS, received


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


def test_a_lane_that_is_closed_early_delivers_no_more_chunks(edge):
    for request_id in "ab":
        edge.sender.open_lane(request_id)
        edge.sender.send(request_id, CHUNKS[0])
    edge.sender.close_lane("a")
    assert received(edge) == [("b", CHUNKS[0]), ("a", LaneSignal.ABORT)]
