"""The orchestrator's tests run on a virtual clock."""

import pytest

from tests.virtual_clock import VirtualClockLoop


@pytest.fixture
def anyio_backend():
    return "asyncio", {"loop_factory": VirtualClockLoop}
