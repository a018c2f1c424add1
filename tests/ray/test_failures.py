"""Actors, nodes, connections and servers that die or fall silent, and what is left of them."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import anyio
import pytest
import ray
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator import AsyncChunkOrchestrator, Patience, Supervisor
from stages.contract.errors import UnavailableError, WorkerDiedError
from stages.contract.pipeline import prewarm_fn, speech_request
from stages.runtime.connectors.contract import Address
from stages.runtime.executors.connections import Connection
from stages.runtime.executors.ray_actor import LEASE_S
from stages.runtime.placement import Placement
from tests.deployments import build_fake
from tests.ray.conftest import NODE_CPUS
from tests.stages.models.fake.test_pipeline import VOICE, collect
from tests.stages.runtime.connectors.relay import Relay

pytestmark = pytest.mark.ray

LONG = "word " * 400
FEW_S = 8


class Serving:
    """A deployment with its speech orchestrator and supervisor, as a server has them."""

    def __init__(self, *on):
        self.deployment = build_fake(*(on if len(on) == 3 else on * 3))
        speech = self.deployment.models[0].pipelines[0]
        self.orchestrator = AsyncChunkOrchestrator(
            speech.handles, speech.final_stage_ids, prewarm_fn
        )
        self.talkers, self.sounders = (stage.workers for stage in self.deployment.stages[1:])

    async def speak(self, text="hello there you"):
        outputs = await collect(self.orchestrator, speech_request(text, VOICE))
        assert [output.finished for output in outputs] == [False] * (len(outputs) - 1) + [True]
        return outputs

    @asynccontextmanager
    async def streams(self, count):
        """Long streams, past their first output. Yields the tasks that read the rest afterwards."""
        async with asyncio.TaskGroup() as tasks:
            begun, go_on = [asyncio.Event() for _ in range(count)], asyncio.Event()

            async def one(event):
                request = speech_request(LONG, VOICE)
                async with self.orchestrator.stream(request, deadline_s=60) as outputs:
                    seen = [await anext(outputs)]
                    event.set()
                    await go_on.wait()
                    return seen + [output async for output in outputs]

            running = [tasks.create_task(one(event)) for event in begun]
            for event in begun:
                await event.wait()
            yield running
            go_on.set()


@asynccontextmanager
async def serving(*on):
    served = Serving(*on)
    await served.deployment.start(60)
    await served.orchestrator.start()
    supervisor = Supervisor(served.deployment.workers, Patience(start_s=60))
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(supervisor.run)
            yield served
            await served.orchestrator.shutdown()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await served.deployment.stop()


async def until(condition, seconds=30):
    """Poll: what another process does cannot be awaited."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def pid_of(worker):
    """The process of a worker's actor."""
    return ray.get(worker.actor.__ray_call__.remote(lambda _: os.getpid()))


def end_first_lease(worker):
    """The lease with which the actor starts, which would keep it a while after all have left."""
    ray.get(worker.actor.detach.remote(""))


def endings(streams):
    ends = [task.result()[-1] for task in streams]
    assert all(end.finished for end in ends)
    assert all(not any(o.finished for o in task.result()[:-1]) for task in streams)
    return [end.error for end in ends]


async def test_a_killed_actor_fails_only_its_own_requests_and_comes_back(placed):
    async with serving(placed(2)) as served:
        victim = served.talkers[0]
        async with served.streams(8) as streams:
            assert victim.num_live == 4
            pid = pid_of(victim)
            began = time.monotonic()
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not victim.is_up, 5)
            assert time.monotonic() - began < 1
            assert served.deployment.is_up
            assert served.deployment.stages[1].num_up == 1
        errors = endings(streams)
        assert sum(isinstance(error, WorkerDiedError) for error in errors) == 4
        assert errors.count(None) == 4
        await until(lambda: victim.is_up)
        assert victim.num_starts == 2
        assert (await served.speak())[-1].error is None


async def test_a_killed_node_during_20_streams_gives_20_endings_and_a_next_request(placed, cluster):
    async with serving(placed(2)) as served:
        doomed = served.talkers[0].node_id
        node = next(each for each in cluster.worker_nodes if each.node_id == doomed)
        async with served.streams(20) as streams:
            on_node = [w for w in served.deployment.workers if w.node_id == doomed]
            assert 0 < len(on_node) < 6
            cluster.remove_node(node, allow_graceful=False)
            await until(lambda: not any(w.is_up for w in on_node), 10)
        errors = endings(streams)
        assert len(errors) == 20
        assert sum(error is not None for error in errors) > 0
        await until(lambda: served.deployment.is_up and served.orchestrator.is_up)
        assert (await served.speak())[-1].error is None
        await until(lambda: all(w.is_up for w in on_node), 60)
        assert all(w.node_id != doomed for w in on_node)
        assert (await served.speak())[-1].error is None
    cluster.add_node(num_cpus=NODE_CPUS)


async def test_an_actor_that_falls_silent_is_ended_and_placed_again(placed):
    async with serving(placed(2)) as served:
        victim = served.sounders[0]
        frozen = pid_of(victim)
        async with served.streams(4) as streams:
            os.kill(frozen, signal.SIGSTOP)
            await until(lambda: not victim.is_up, FEW_S)
        errors = endings(streams)
        assert errors.count(None) == 2
        await until(lambda: victim.is_up)
        assert pid_of(victim) != frozen
        assert (await served.speak())[-1].error is None


async def test_a_partition_between_two_workers_fails_their_requests_and_is_repaired(
    placed, monkeypatch
):
    """Both workers answer the server, but bytes between them stop."""
    relays, plain = [], Connection.send_address

    def send_address(connection):
        of_talker = connection.name.startswith("talker:0>")
        if of_talker and connection.can_be_up and connection.address and not relays:
            relays.append(Relay(connection.address.endpoint))
            connection.address = Address(relays[0].endpoint, connection.address.secret)
        plain(connection)

    monkeypatch.setattr(Connection, "send_address", send_address)
    on = placed()
    async with serving(on) as served:
        sounder = served.sounders[0]
        async with served.streams(3) as streams:
            relays[0].cut()
            await until(lambda: sounder.num_live == 0, FEW_S)
        errors = endings(streams)
        assert all(isinstance(error, UnavailableError) for error in errors)
        assert sounder.is_up
        with pytest.raises(UnavailableError):  # nobody waits for what cannot be reached
            await (
                served.deployment.models[0]
                .pipelines[0]
                .handles[0]
                .submit("x", speech_request("x", VOICE).stage_input(0))
            )
        await until(lambda: sounder.num_starts == 2, 30)
        assert (await served.speak())[-1].error is None
        relays[0].close()


async def test_two_servers_share_the_workers_and_one_that_leaves_harms_no_other(placed):
    on = placed()
    async with serving(on) as one:
        async with serving(on) as other:
            assert pid_of(one.talkers[0]) == pid_of(other.talkers[0])
            async with other.streams(2) as streams:
                assert (await one.speak())[-1].error is None
            assert endings(streams) == [None, None]
            stats = [each.talkers[0].step_stats for each in (one, other)]
            words = sum(each.batch_size.total for each in stats)
            assert words == (3 + 1) + 2 * (400 + 1)  # a step for each, and for the end
            assert sum(each.step_s.cumulative[-1] for each in stats) > 0
        assert (await one.speak())[-1].error is None


async def test_a_killed_worker_of_any_kind_fails_only_its_own_requests(placed):
    """First talkers in processes send to actors, then actors send to code2wavs in processes."""
    on, inside = placed(2), Placement(executor="process", replicas=2)
    async with serving(inside, inside, on) as served:
        assert await died_alone(served, served.talkers[0], served.talkers[0].pid)
        assert await died_alone(served, served.sounders[0], pid_of(served.sounders[0]))
    async with serving(on, on, inside) as served:
        assert await died_alone(served, served.talkers[0], pid_of(served.talkers[0]))
        assert await died_alone(served, served.sounders[0], served.sounders[0].pid)


async def died_alone(served, victim, pid):
    """Whether exactly the two of four streams that were bound to it failed, and it came back."""
    starts = victim.num_starts
    async with served.streams(4) as streams:
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not victim.is_up, 5)
        assert served.deployment.is_up
    errors = endings(streams)
    await until(lambda: victim.is_up)
    for _ in range(2):  # one for each replica
        assert (await served.speak())[-1].error is None
    return (errors.count(None), victim.num_starts) == (2, starts + 1)


async def test_an_actor_serves_servers_each_with_neighbours_of_its_own(placed):
    """A talker on Ray between stages in threads of two servers. One leaves, and comes back."""
    on, inside = placed(), Placement()
    async with serving(inside, on, inside) as one:
        for _ in range(2):
            async with serving(inside, on, inside) as other:
                assert pid_of(one.talkers[0]) == pid_of(other.talkers[0])
                async with other.streams(2) as streams, one.streams(2) as more:
                    pass
                assert endings(streams) == endings(more) == [None] * 2
        assert (await one.speak())[-1].error is None


async def test_a_server_that_starts_as_the_last_one_leaves_gets_workers(placed):
    on = placed()
    for _ in range(3):
        async with serving(on) as served:
            for worker in served.deployment.workers:
                end_first_lease(worker)
            assert (await served.speak())[-1].error is None


async def test_servers_with_different_stages_do_not_share_an_actor(placed):
    from dataclasses import replace

    from stages.contract.errors import StartError
    from stages.models.fake.stages import FakeThinker
    from stages.runtime.replicas import make_replicas

    on = placed()
    async with serving(on):
        [talker] = make_replicas(replace(on), "talker", FakeThinker).workers
        with pytest.raises(StartError, match="talker"):
            await talker.start(20)
        await talker.stop()


SERVER = """
import asyncio, sys
from tests.ray.test_failures import Serving
from stages.runtime.placement import Placement, RayCluster
from stages.contract.pipeline import speech_request
from tests.stages.models.fake.test_pipeline import VOICE
async def main():
    served = Serving(Placement(executor="ray", cpus=0.1, ray=RayCluster(*sys.argv[1:])))
    await served.deployment.start(60)
    await served.orchestrator.start()
    async with served.orchestrator.stream(speech_request("word " * 400, VOICE)) as outputs:
        await anext(outputs)
        print("streaming", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_requests_of_a_killed_server_end_with_its_lease_and_actors_with_the_last_lease(
    placed, cluster, request
):
    where = (cluster.address, request.node.name)
    on = placed()
    async with serving(on) as served:
        killed = await anyio.open_process(
            [sys.executable, "-c", SERVER, *where], stdout=subprocess.PIPE
        )
        assert (
            await BufferedByteReceiveStream(killed.stdout).receive_until(b"\n", 99) == b"streaming"
        )
        talker = served.talkers[0]
        assert num_requests(talker) == 1
        killed.kill()
        await killed.wait()
        await killed.aclose()
        await until(lambda: num_requests(talker) == 0, LEASE_S + 5)
        assert (await served.speak())[-1].error is None
    await until(lambda: not actors_of(where[1]), 10)


def num_requests(worker):
    """How many requests of all servers an actor holds."""
    return ray.get(worker.actor.__ray_call__.remote(lambda actor: actor.num_live))


def actors_of(namespace):
    """The actors of a namespace."""
    return [
        each
        for each in ray.util.list_named_actors(all_namespaces=True)
        if each["namespace"] == namespace
    ]
