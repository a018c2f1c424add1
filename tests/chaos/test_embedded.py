"""The embedded models under load, with workers in processes, one of which is killed."""

import asyncio
import os
import random
import signal
from collections import Counter

import anyio.to_thread
import httpx2
import pytest

from tests.chaos.client import post
from tests.chaos.process import children, holding, server
from tests.chaos.test_chaos import chat, speech, until

pytestmark = pytest.mark.model

NUM_REQUESTS = int(os.environ.get("STORM_REQUESTS", "150")) // 10  # noqa: TID251
TEXT = "The quick brown fox jumps over the lazy dog, and nobody in the garden minds. "


def workers(pid):
    """The processes of the stages: the children of the fork server."""
    return [below for child in children(pid) for below in children(child)]


def wait_for_restart(port):
    """Wait until the server reports that it is not ready, and then that it is ready again."""
    until(lambda: httpx2.get(f"http://127.0.0.1:{port}/health/ready").status_code == 503)
    assert until(lambda: httpx2.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200, 60)


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
                    os.kill(workers(process.pid)[0], signal.SIGKILL)
                    await anyio.to_thread.run_sync(wait_for_restart, port)
        assert sum(endings.values()) == NUM_REQUESTS
        assert set(endings) <= {"done", "left", "error", "503", "429"}, endings
        assert endings["done"] > 0
        assert (await post(port, *speech(TEXT))).ending == "done"
        assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
        after = holding(process.pid)
        assert after.processes == before.processes
        assert after.memory_mb < before.memory_mb * 1.2
