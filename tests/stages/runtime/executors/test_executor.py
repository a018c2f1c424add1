"""What all executors have of the start of a worker, with one whose worker only says so."""

import asyncio

import pytest

from stages.contract.errors import StartError
from stages.runtime.executors.executor import Executor
from stages.runtime.worker.control import Ready


class Scripted(Executor):
    """Its worker says these things in one turn of the loop."""

    kind = "scripted"

    def __init__(self, *says):
        super().__init__("talker", object)
        self._says = says

    async def _launch(self):
        loop = asyncio.get_running_loop()
        for say in self._says:
            loop.call_soon(say, self)

    def post(self, order):
        """Nobody is there."""

    def kill(self):
        """See Executor."""


def is_ready(worker):
    worker._on_ready(Ready({}, {}))


def dies(worker):
    worker._on_end("killed")


async def test_a_worker_that_is_ready_is_up():
    worker = Scripted(is_ready)
    await worker.start(5)
    assert worker.is_up


@pytest.mark.parametrize("says", [(dies,), (is_ready, dies)], ids=["before", "at once after"])
async def test_one_that_dies_as_it_starts_is_not_up(says):
    worker = Scripted(*says)
    with pytest.raises(StartError, match="talker"):
        await worker.start(5)
    assert not worker.is_up
    await worker.ended()
