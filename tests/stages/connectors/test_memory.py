"""The memory connector passes the conformance suite."""

import pytest

from stages.connectors.memory import MemoryConnector
from tests.stages.connectors.conformance import *  # noqa: F403


@pytest.fixture
def edge():
    rung = []
    edge = MemoryConnector(
        lambda: rung.append("receiver"), lambda: rung.append("sender"), max_chunks=4
    )
    edge.rung = rung
    yield edge
    edge.close()
