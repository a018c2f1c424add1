"""The embedded models under load, with workers in processes, one of which is killed."""

import asyncio
import os
import random
import signal
from collections import Counter

import anyio.to_thread
import pytest

from tests.chaos.client import post
from tests.chaos.process import children, holding, server
from tests.chaos.test_chaos import UP_S, all_up, chat, is_settled, speech, until

pytestmark = pytest.mark.model

NUM_REQUESTS = int(os.environ.get("STORM_REQUESTS", "150")) // 10  # noqa: TID251
TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the garden minds. "


def workers(pid):
    """The processes of the stages: the children of the fork server."""
    return [below for child in children(pid) for below in children(child)]


def kill_worker(process, port):
    """Kill one worker, and wait until another one has taken its place."""
    before = workers(process.pid)
    os.kill(before[0], signal.SIGKILL)

    def is_replaced():
        now = workers(process.pid)
        return before[0] not in now and len(now) == len(before) and all_up(port)

    assert until(is_replaced, UP_S)


async def test_under_load_with_a_killed_worker_every_request_ends_and_nothing_leaks():
    rng, endings = random.Random(2), Counter()
    command = ("server.cli.main", "serve", "--port", "0", "--executor", "process")
    with server(*command) as (process, port):
        await post(port, *speech(TEXT))
        await post(port, *chat("Tell me about the sea.", max_tokens=20))
        before = holding(process.pid)

        async def one():
            leave = rng.choice([0, 1, 3]) if rng.random() < 0.2 else None
            request = rng.choice([speech(TEXT * 2), chat("Tell me of Rome.", max_tokens=30)])
            endings[(await post(port, *request, leave)).ending] += 1

        async with asyncio.TaskGroup() as tasks:
            for n in range(NUM_REQUESTS):
                tasks.create_task(one())
                await asyncio.sleep(rng.expovariate(8))
                if n == NUM_REQUESTS // 2:
                    await anyio.to_thread.run_sync(kill_worker, process, port)
        assert sum(endings.values()) == NUM_REQUESTS
        assert set(endings) <= {"done", "left", "error", "503", "429"}, endings
        assert endings["done"] > 0
        assert until(lambda: is_settled(port), UP_S)
        assert (await post(port, *speech(TEXT))).ending == "done"
        assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
        after = holding(process.pid)
        assert after.processes == before.processes
        assert after.memory_mb < before.memory_mb * 1.2
