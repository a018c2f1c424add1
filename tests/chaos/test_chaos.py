"""A server with faulty fake stages under heavy load: every request ends once, and nothing leaks.

No test depends on how fast the machine is. Tests wait for events and for states, and give up only
after `HANG_S`. `STORM_REQUESTS` sets the number of requests (`make verify` uses 500 or more).
"""

import asyncio
import os  # for STORM_REQUESTS and /proc
import random
import signal
import time
from collections import Counter
from pathlib import Path

import anyio.to_thread
import httpx2
import pytest

from orchestrator import Patience
from tests.chaos.client import HANG_S, post, under_way
from tests.chaos.process import children, holding, server

NUM_REQUESTS = int(os.environ.get("STORM_REQUESTS", "150"))  # noqa: TID251
NUM_DEATHS = NUM_REQUESTS // 100 + 1
WORDS = " word" * 60
LOOK_AGAIN_S = 0.05
UP_S = HANG_S + Patience().max_pause_s  # a worker that keeps dying is restarted after longer pauses


@pytest.fixture(params=["thread", "process"], scope="module")
def executor(request):
    return request.param


@pytest.fixture(scope="module")
def faulty(executor):
    """A server that is shared by the tests that do not stop it."""
    with server("tests.chaos.faults", executor, "1") as found:
        yield found


@pytest.fixture
def disposable(executor):
    """A server for one test, which may stop it."""
    with server("tests.chaos.faults", executor, "1") as found:
        yield found


@pytest.fixture
def hasty(executor):
    """A server for one test. After SIGTERM it gives streams one second to finish."""
    with server("tests.chaos.faults", executor, "1", "shutdown_s=1") as found:
        yield found


@pytest.fixture(scope="module")
def replicated(executor):
    """A shared server with two workers for each stage."""
    with server("tests.chaos.faults", executor, "2") as found:
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
        limits = {"timeout_s": 1} if fault == "stall" else {}
        yield (*rng.choice([speech, chat])(text, **limits), leave)


async def storm(port, count, seed=1, concurrency=20):
    """Send `count` requests, `concurrency` at a time. Returns how often each ending occurred."""
    limit, endings = asyncio.Semaphore(concurrency), Counter()

    async def one(path, body, leave):
        async with limit:
            while True:
                ending = (await post(port, path, body, leave)).ending
                endings[ending] += 1
                if ending != "503" or " die" in str(body):
                    return
                await asyncio.sleep(LOOK_AGAIN_S)  # as a client that honours Retry-After

    async with asyncio.TaskGroup() as tasks:
        for path, body, leave in requests_of_a_storm(random.Random(seed), count):
            tasks.create_task(one(path, body, leave))
    return endings


def until(condition, seconds=HANG_S):
    """Wait until `condition` holds in another process. Returns False if it seems to hang."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(LOOK_AGAIN_S)  # noqa: TID251 - another process's state cannot be awaited
    return False


def ready(port):
    return httpx2.get(f"http://127.0.0.1:{port}/health/ready").status_code == 200


def all_up(port):
    """Whether all workers of all stages run, rather than only one of each stage."""
    answer = httpx2.get(f"http://127.0.0.1:{port}/health/ready")
    stages = answer.json().get("stages", {}).values()
    return answer.status_code == 200 and all(each["up"] == each["workers"] for each in stages)


def is_idle(port):
    """Whether no request runs, including those whose clients have left."""
    metrics = httpx2.get(f"http://127.0.0.1:{port}/metrics").text
    return "nano_omni_requests_running 0.0" in metrics.splitlines()


def is_settled(port):
    """Whether no request runs and no worker is being restarted."""
    return all_up(port) and is_idle(port)


def check_nothing_leaks(process, before, memory_mb):
    """Check that the server's resources return to what they were, apart from some memory."""

    def is_back():
        now = holding(process.pid)
        fewer = now.descriptors <= before.descriptors and now.threads <= before.threads
        return fewer and now.processes == before.processes

    assert until(is_back), (before, holding(process.pid))
    assert holding(process.pid).memory_mb < before.memory_mb + memory_mb


def talkers_up(port):
    answer = httpx2.get(f"http://127.0.0.1:{port}/health/ready")
    return answer.json()["stages"]["talker"]["up"]


async def test_under_load_every_request_ends_once_and_nothing_leaks(faulty):
    await check_storm(*faulty)


async def test_under_load_with_replicas_every_request_ends_once(replicated):
    await check_storm(*replicated)


async def check_storm(process, port):
    await storm(port, 90, seed=0, concurrency=60)  # so that everything has its full size
    assert until(lambda: is_settled(port), UP_S)
    before = holding(process.pid)
    endings = await storm(port, NUM_REQUESTS)
    assert sum(endings.values()) - endings["503"] >= NUM_REQUESTS - NUM_DEATHS
    assert not [ending for ending in endings if ending.startswith("WRONG")], endings
    assert endings["done"] > NUM_REQUESTS / 3, endings
    assert endings["error"] > 0, endings
    assert until(lambda: is_settled(port), UP_S)
    assert (await post(port, *speech("all is well"))).ending == "done"
    check_nothing_leaks(process, before, memory_mb=30)


async def test_a_stalled_request_delays_no_other(faulty):
    _, port = faulty
    async with under_way(port, *speech("word stall")) as stalled:
        assert (await post(port, *speech("all is well"))).ending == "done"
        assert stalled.status == 200
        assert not stalled.ended.is_set()


async def test_a_stalled_request_ends_at_its_deadline(faulty):
    _, port = faulty
    began = time.monotonic()
    stalled = await post(port, *speech("word stall", timeout_s=1))
    assert time.monotonic() - began >= 1
    assert stalled.ending in {"error", "504"}  # a status, if the first audio took so long
    assert b"deadline_exceeded" in stalled.body


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
    assert until(lambda: is_settled(port), UP_S)
    async with under_way(port, *speech("word stall")) as other:
        dying = await post(port, *speech("word " * 30 + "die"))
        assert dying.ending in {"error", "503"}
        assert b"worker_died" in dying.body
        assert ready(port)
        assert (await post(port, *speech("all is well"))).ending == "done"
        assert not other.ended.is_set()
    assert until(lambda: talkers_up(port) == 2, UP_S)


async def test_beyond_the_limits_requests_are_refused_at_once(faulty):
    """Those that run or wait never end, so the first that end were refused."""
    _, port = faulty
    assert until(lambda: is_settled(port), UP_S)
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(post(port, *speech("stall"))) for _ in range(64 + 64 + 20)]
        ended = asyncio.as_completed(asked)
        endings = [(await next(ended)).ending for _ in range(20)]
        assert endings == ["429"] * 20
        assert sum(task.done() for task in asked) == 20
        for task in asked:
            task.cancel()
    assert until(lambda: is_idle(port))


async def test_sigterm_lets_streams_finish(disposable):
    process, port = disposable
    async with under_way(port, *speech("word linger " * 2)) as fine:
        process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(process.wait, HANG_S) == 0
        await fine.ended.wait()
    assert fine.ending == "done"


async def test_sigterm_ends_stuck_streams_with_an_error(hasty):
    process, port = hasty
    async with under_way(port, *speech("word stall")) as stuck:
        process.send_signal(signal.SIGTERM)
        assert await anyio.to_thread.run_sync(process.wait, HANG_S) == 0
        await stuck.ended.wait()
    assert stuck.ending == "error"


async def test_a_server_killed_with_sigkill_leaves_no_process_behind(disposable):
    process, port = disposable
    assert (await post(port, *speech("hello"))).ending == "done"
    below = children(process.pid)
    shared = set(os.listdir("/dev/shm"))
    process.kill()
    process.wait()
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
    assert set(os.listdir("/dev/shm")) <= shared


def test_repeated_ctrl_c_ends_the_server_without_a_traceback(executor, capfd):
    shared = set(os.listdir("/dev/shm"))
    command = ("server.cli.main", "serve", "--port", "0", "--model", "fake", "--executor", executor)
    with server(*command) as (process, _):
        below = children(process.pid)
        assert until(lambda: process.send_signal(signal.SIGINT) or process.poll() is not None)
        assert process.returncode in (0, -signal.SIGINT)
    assert "Traceback" not in capfd.readouterr().err
    assert until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
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
