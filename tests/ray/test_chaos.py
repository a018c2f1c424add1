"""A server of faulty fake stages, on a local cluster of its own: a short storm, then its end."""

import os
import signal
from pathlib import Path

import pytest

from tests.chaos.client import post, under_way
from tests.chaos.process import children, server
from tests.chaos.test_chaos import UP_S, is_settled, ready, speech, storm, talkers_up, until

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def on_ray():
    with server("tests.chaos.faults", "ray", "2") as found:
        yield found


async def test_in_a_storm_every_request_ends_once(on_ray):
    _, port = on_ray
    endings = await storm(port, 60)  # one of them kills a worker
    assert not [ending for ending in endings if ending.startswith("WRONG")], endings
    assert endings["done"] > 20, endings
    assert endings["error"] > 0, endings
    assert until(lambda: is_settled(port), UP_S)
    assert (await post(port, *speech("all is well"))).ending == "done"


async def test_a_replica_that_dies_takes_only_its_requests_with_it(on_ray):
    _, port = on_ray
    assert until(lambda: is_settled(port), UP_S)
    async with under_way(port, *speech("word stall")) as other:
        dying = await post(port, *speech("word " * 30 + "die"))
        assert b"worker_died" in dying.body
        assert ready(port)
        assert (await post(port, *speech("all is well"))).ending == "done"
        assert not other.ended.is_set()
    assert until(lambda: talkers_up(port) == 2, UP_S)


async def test_a_server_killed_outright_leaves_no_stage(on_ray):
    process, port = on_ray
    assert (await post(port, *speech("hello"))).ending == "done"
    below = children(process.pid)
    stages = [pid for pid in below if b"StageActor" in command_of(pid)]
    assert len(stages) == 6
    process.kill()
    process.wait()
    assert until(lambda: not any(b"StageActor" in command_of(pid) for pid in stages))
    for pid in below:  # Ray's own agents take minutes to notice
        if b"ray::" in command_of(pid):
            os.kill(pid, signal.SIGKILL)


def command_of(pid):
    """The command line of a process, empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
