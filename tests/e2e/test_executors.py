"""Stages in threads, in processes and mixed: the same samples, and a worker that is killed."""

import os
import signal
import time

import httpx2
import numpy as np
import pytest

from server.config.settings import Settings
from server.serving.service import Service
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.deployments import placed
from tests.server.loopback import serving

pytestmark = pytest.mark.model

TEXT = "Rice is often served in round bowls. The juice of lemons makes fine punch, they say."


@pytest.fixture(
    scope="module",
    params=[["process"] * 3, ["thread", "process", "thread"]],
    ids=["all in processes", "one in a process"],
)
def in_processes(model_cache_dir, request):
    deployments = []

    def deploy():
        places = (Placement(executor=each) for each in request.param)
        deployments.append(build(["embedded"], BuildConfig(model_cache_dir, placed(*places))))
        return deployments[0]

    service = Service(Settings(port=0), deploy)
    with serving(service, start_s=120) as address:
        yield address.url, deployments[0]


def ask(url, text=TEXT, **more):
    body = {"model": "tts-1", "voice": "alloy", "input": text, "response_format": "pcm", **more}
    return httpx2.post(f"{url}/v1/audio/speech", json=body, timeout=60)


def test_the_same_seed_gives_the_same_samples_in_threads_and_in_processes(url, in_processes):
    one, other = (
        np.frombuffer(ask(each, seed=5).content, np.int16) for each in (url, in_processes[0])
    )
    assert len(one) == len(other) > 24_000
    assert np.abs(one.astype(int) - other).max() <= 1


def test_the_same_seed_writes_the_same_text_in_threads_and_in_processes(url, in_processes):
    body = {
        "model": "smollm2-joe",
        "messages": [{"role": "user", "content": "Tell me a story."}],
        "seed": 3,
        "max_tokens": 40,
    }
    answers = {
        httpx2.post(f"{each}/v1/chat/completions", json=body, timeout=60).json()["choices"][0][
            "message"
        ]["content"]
        for each in (url, in_processes[0])
    }
    assert len(answers) == 1


def test_a_killed_worker_fails_its_requests_and_comes_back(in_processes):
    url, deployment = in_processes
    talker = next(worker for worker in deployment.workers if worker.name == "talker")
    body = {"model": "tts-1", "voice": "alloy", "input": TEXT * 20, "response_format": "pcm"}
    with httpx2.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=60) as response:
        chunks = response.iter_bytes()
        next(chunks)
        os.kill(talker.pid, signal.SIGKILL)
        killed = time.monotonic()
        with pytest.raises(httpx2.RemoteProtocolError):
            list(chunks)
    assert time.monotonic() - killed < 2
    chat = {"model": "smollm2-joe", "messages": [{"role": "user", "content": "Hi"}]}
    assert httpx2.post(f"{url}/v1/chat/completions", json=chat, timeout=60).status_code == 200
    end = time.monotonic() + 30
    while (answer := ask(url)).status_code == 503 and time.monotonic() < end:
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        time.sleep(0.1)  # noqa: TID251 - waits for another process
    assert answer.status_code == 200
    assert len(answer.content) > 48_000
