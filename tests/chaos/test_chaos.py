"""A server with faulty fake stages under heavy load: every request ends once, and nothing leaks.

`STORM_REQUESTS` sets the number of requests (`make verify` uses 500 or more).
"""

import asyncio
import os  # for STORM_REQUESTS and /proc
import random
import signal
import time
from collections import Counter
from pathlib import Path

import httpx2
import pytest

from orchestrator import Patience
from tests.chaos.client import post
from tests.chaos.process import children, holding, server

NUM_REQUESTS = int(os.environ.get("STORM_REQUESTS", "150"))  # noqa: TID251
NUM_DEATHS = NUM_REQUESTS // 100 + 1
WORDS = " word" * 60
UP_S = 20 + Patience().max_pause_s  # a worker that keeps dying is restarted after longer pauses


@pytest.fixture(params=["thread", "process"], scope="module")
def faulty(request):
    """A server that is shared by the tests that do not stop it."""
    with server("tests.chaos.faults", request.param, "1") as found:
        yield found


@pytest.fixture(params=["thread", "process"])
def disposable(request):
    """A server for one test, which may stop it."""
    with server("tests.chaos.faults", request.param, "1") as found:
        yield found


@pytest.fixture(params=["thread", "process"], scope="module")
def replicated(request):
    """A shared server with two workers for each stage."""
    with server("tests.chaos.faults", request.param, "2") as found:
        yield found


def speech(text, **more):
    return "/v1/audio/speech", {
        "model": "tts-1",
        "voice": "alloy",
        "input": text,
        "response_format": "pcm",
        "stream_format": "sse",
        **more,
    }


def chat(text, **more):
    return "/v1/chat/completions", {
        "model": "gpt-audio",
        "messages": [{"role": "user", "content": text}],
        "modalities": ["text", "audio"],
        "audio": {"voice": "alloy", "format": "pcm16"},
        "stream": True,
        "max_tokens": 200,
        **more,
    }


def requests_of_a_storm(rng, count):
    """Yields path, body and `leave_after`. A fifth disconnect, and a fifth ask for a fault."""
    for n in range(count):
        fault = rng.choice(["fail", "stall", "linger"]) if rng.random() < 0.2 else "word"
        if n % 100 == 50:
            fault = "die"
        num_words_before = rng.randrange(60)
        text = " word" * num_words_before + f" {fault}" + WORDS
        leave = rng.choice([0, 1, 5, 20]) if rng.random() < 0.2 else None
        yield (*rng.choice([speech, chat])(text), leave)


async def storm(port, count, seed=1, concurrency=20):
    """Send `count` requests, `concurrency` at a time. Returns how often each ending occurred."""
    limit, endings = asyncio.Semaphore(concurrency), Counter()

    async def one(path, body, leave):
        async with limit, asyncio.timeout(60):
            while True:
                ending = (await post(port, path, body, leave)).ending
                endings[ending] += 1
                if ending != "503" or " die" in str(body):
                    return
                await asyncio.sleep(0.2)  # as a client that honours Retry-After

    async with asyncio.TaskGroup() as tasks:
        for path, body, leave in requests_of_a_storm(random.Random(seed), count):
            tasks.create_task(one(path, body, leave))
    return endings


def until(condition, seconds=20.0):
    """Wait until `condition` holds in another process. Returns False if it does not in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)  # noqa: TID251 - another process's state cannot be awaited
    return False


def ready(port):
    return httpx2.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200


def all_up(port):
    """Whether all workers of all stages run, rather than only one of each stage."""
    answer = httpx2.get(f"http://127.0.0.1:{port}/health/ready")
    stages = answer.json().get("stages", {}).values()
    return answer.status_code == 200 and all(each["up"] == each["workers"] for each in stages)


def talkers_up(port):
    answer = httpx2.get(f"http://127.0.0.1:{port}/health/ready")
    return answer.json()["stages"]["talker"]["up"]


async def test_under_load_every_request_ends_once_and_nothing_leaks(faulty):
    await check_storm(*faulty)


async def test_under_load_with_replicas_every_request_ends_once(replicated):
    await check_storm(*replicated)


async def check_storm(process, port):
    await storm(port, 90, seed=0, concurrency=60)  # so that all thread pools are at their full size
    assert until(lambda: all_up(port), UP_S)
    before = holding(process.pid)
    endings = await storm(port, NUM_REQUESTS)
    assert sum(endings.values()) - endings["503"] >= NUM_REQUESTS - NUM_DEATHS
    assert not [ending for ending in endings if ending.startswith("WRONG")], endings
    assert endings["done"] > NUM_REQUESTS / 3, endings
    assert endings["error"] > 0, endings
    assert until(lambda: all_up(port), UP_S)
    assert (await post(port, *speech("all is well"))).ending == "done"
    assert until(lambda: holding(process.pid).descriptors <= before.descriptors)
    after = holding(process.pid)
    assert after.processes == before.processes
    assert after.threads <= before.threads
    assert after.memory_mb < before.memory_mb + 30


async def test_a_stalled_request_ends_at_its_deadline_and_delays_no_other(faulty):
    _, port = faulty
    stalled = asyncio.ensure_future(post(port, *speech("word stall")))  # noqa: TID251
    fine = await post(port, *speech("all is well"))
    assert fine.ending == "done"
    assert not stalled.done()
    assert (await stalled).ending == "error"


async def test_a_failure_before_the_first_audio_gives_an_error_status(faulty):
    _, port = faulty
    answer = await post(port, *speech("fail"))
    assert answer.ending == "500"
    assert b'"error"' in answer.body


async def test_a_worker_that_dies_fails_only_its_own_requests(faulty):
    _, port = faulty
    text_only = chat("hello", modalities=["text"], audio=None)
    dying = await post(port, *speech("word " * 30 + "die"))
    assert dying.ending in {"error", "503"}
    assert httpx2.get(f"http://127.0.0.1:{port}/health/live").status_code == 200
    assert (await post(port, *text_only)).ending == "done"
    refused = await post(port, *speech("hello"))
    assert refused.ending in {"503", "done"}
    assert until(lambda: ready(port), UP_S)
    assert (await post(port, *speech("hello"))).ending == "done"


async def test_a_replica_that_dies_fails_only_its_own_requests(replicated):
    _, port = replicated
    began = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        other = tasks.create_task(post(port, *speech("word stall"), on_chunk=began.set))
        await began.wait()
        dying = await post(port, *speech("word " * 30 + "die"))
        assert dying.ending in {"error", "503"}
        assert talkers_up(port) == 1
        assert ready(port)
        assert (await post(port, *speech("all is well"))).ending == "done"
    assert b"worker_died" in dying.body
    assert b"worker_died" not in other.result().body
    assert until(lambda: talkers_up(port) == 2, UP_S)


async def test_beyond_the_limits_requests_are_refused_at_once(faulty):
    _, port = faulty
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(post(port, *speech("stall"))) for _ in range(64 + 64 + 20)]
    endings = Counter(task.result().ending for task in waiting)
    assert endings["429"] == 20, endings
    assert sum(endings.values()) == 148


async def test_sigterm_lets_streams_finish_and_ends_stuck_ones_with_an_error(disposable):
    process, port = disposable
    begun = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        fine, stuck = (
            tasks.create_task(post(port, *speech(text), on_chunk=event.set))
            for text, event in zip(("word linger " * 2, "word stall"), begun, strict=True)
        )
        for event in begun:
            await event.wait()
        process.send_signal(signal.SIGTERM)
    assert fine.result().ending == "done"
    assert stuck.result().ending == "error"
    assert process.wait(10) == 0


async def test_a_server_killed_with_sigkill_leaves_no_process_behind(disposable):
    process, port = disposable
    assert (await post(port, *speech("hello"))).ending == "done"
    below = children(process.pid)
    shared = set(os.listdir("/dev/shm"))
    process.kill()
    process.wait()
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 5)
    assert set(os.listdir("/dev/shm")) <= shared


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_repeated_ctrl_c_ends_the_server_without_a_traceback(executor, capfd):
    shared = set(os.listdir("/dev/shm"))
    command = ("server.cli.main", "serve", "--port", "0", "--model", "fake", "--executor", executor)
    with server(*command) as (process, _):
        below = children(process.pid)
        assert until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None)
        assert process.returncode in (0, -signal.SIGINT)
    assert "Traceback" not in capfd.readouterr().err
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below), 5)
    assert set(os.listdir("/dev/shm")) <= shared


async def test_two_requests_with_the_same_client_id_are_both_served(faulty):
    _, port = faulty
    async with asyncio.TaskGroup() as tasks:
        both = [
            tasks.create_task(post(port, *speech(text), headers="x-request-id: same\r\n"))
            for text in ("one two", "three four five")
        ]
    answers = [task.result() for task in both]
    assert [answer.ending for answer in answers] == ["done", "done"]
    assert answers[0].body != answers[1].body
