"""The start of a worker, the same in all executors, with an executor that has no worker."""

import asyncio

import pytest

from stages.contract.errors import StartError
from stages.runtime.executors.executor import Executor
from stages.runtime.worker.control import Ready


class Scripted(Executor):
    """Calls these methods of its own in one turn of the loop, in the place of a worker."""

    kind = "scripted"

    def __init__(self, *calls):
        super().__init__("talker", object)
        self._calls = calls

    async def _launch(self):
        loop = asyncio.get_running_loop()
        for call in self._calls:
            loop.call_soon(call, self)

    def post(self, order):
        """Nobody is there."""

    def kill(self):
        """Nobody is there."""

    def is_ready(self):
        self._on_ready(Ready({}, {}))

    def dies(self):
        self._on_end("killed")


is_ready, dies = Scripted.is_ready, Scripted.dies


async def test_a_worker_that_is_ready_is_up():
    worker = Scripted(is_ready)
    await worker.start(5)
    assert worker.is_up


@pytest.mark.parametrize("calls", [(dies,), (is_ready, dies)], ids=["before", "at once after"])
async def test_a_worker_that_dies_as_it_starts_is_not_up(calls):
    worker = Scripted(*calls)
    with pytest.raises(StartError, match="talker"):
        await worker.start(5)
    assert not worker.is_up
    await worker.ended()
