"""Workers that die come back, more slowly each time; a silent one is ended first."""

import asyncio
from contextlib import asynccontextmanager

import anyio
import pytest

from orchestrator import Patience, Supervisor
from stages.contract.errors import StartError
from tests.orchestrator.scripted import settle


class FakeWorker:
    """Dies when told; notes when it was started."""

    def __init__(self):
        self.name = "talker"
        self.num_reports = 0
        self.is_stopping = False
        self.owes_acknowledgement = False
        self.starts = []
        self.fails = 0
        self.end = asyncio.Event()

    async def start(self, timeout_s):
        self.starts.append(asyncio.get_running_loop().time())
        if self.fails:
            self.fails -= 1
            raise StartError("no")
        self.end = asyncio.Event()

    async def ended(self):
        await self.end.wait()

    def kill(self):
        self.end.set()


@asynccontextmanager
async def watched(worker, **patience):
    supervisor = Supervisor([worker], Patience(**patience))
    async with anyio.create_task_group() as group:
        group.start_soon(supervisor.run)
        await settle()
        yield supervisor
        group.cancel_scope.cancel()


async def test_a_worker_that_died_is_started_again_after_a_pause():
    worker = FakeWorker()
    async with watched(worker):
        worker.end.set()
        await asyncio.sleep(10)
    assert worker.starts == [pytest.approx(0.5, abs=0.01)]


async def test_pauses_grow_while_it_does_not_come_up():
    worker = FakeWorker()
    worker.fails = 5
    async with watched(worker, max_pause_s=4):
        worker.end.set()
        await asyncio.sleep(60)
    gaps = [later - earlier for earlier, later in zip([0, *worker.starts], worker.starts)]  # noqa: B905
    assert gaps == pytest.approx([0.5, 1, 2, 4, 4, 4], abs=0.01)


async def test_after_a_calm_time_it_comes_back_promptly_again():
    worker = FakeWorker()
    async with watched(worker):
        for _ in range(2):
            worker.end.set()
            await asyncio.sleep(70)
    assert worker.starts[1] - 70 == pytest.approx(0.5, abs=0.01)


async def test_a_worker_that_came_back_needs_a_calm_time_of_its_own():
    worker = FakeWorker()
    async with watched(worker):
        for wait_s in (70, 1, 10):
            worker.end.set()
            await asyncio.sleep(wait_s)
    assert worker.starts[1:] == pytest.approx([70.5, 72.0], abs=0.01)


async def test_a_worker_that_was_told_to_stop_stays_ended():
    worker = FakeWorker()
    async with watched(worker):
        worker.is_stopping = True
        worker.end.set()
        await asyncio.sleep(60)
    assert worker.starts == []


async def test_a_silent_worker_is_ended_and_comes_back():
    worker = FakeWorker()
    worker.owes_acknowledgement = True
    async with watched(worker) as supervisor:
        supervisor.suspect([worker.name])
        supervisor.suspect([worker.name])
        await asyncio.sleep(5.1)
        assert worker.end.is_set()
        await asyncio.sleep(1)
    assert len(worker.starts) == 1


async def test_a_worker_that_shows_life_is_left_alone():
    worker = FakeWorker()
    worker.owes_acknowledgement = True
    async with watched(worker) as supervisor:
        supervisor.suspect([worker.name])
        worker.num_reports += 1
        await asyncio.sleep(6)
        supervisor.suspect([worker.name])
        worker.owes_acknowledgement = False
        await asyncio.sleep(6)
        assert not worker.end.is_set()
        worker.owes_acknowledgement = True
        supervisor.suspect([worker.name])
        await asyncio.sleep(5.1)
        assert worker.end.is_set()
