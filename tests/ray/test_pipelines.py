"""The fake pipelines on Ray: all that they do in threads, with replicas, and beside other kinds."""

from dataclasses import replace

import pytest

from stages.contract.errors import StartError
from stages.contract.roles import Role
from stages.models.fake.stages import FakeTalker
from stages.runtime.connectors.memory import MemoryConnector
from stages.runtime.connectors.remote.edge import RemoteEdge
from stages.runtime.connectors.shared_memory import SharedMemoryEdge
from stages.runtime.deployment import Deployment, PipelineStage, wire
from stages.runtime.placement import Placement
from stages.runtime.replicas import make_replicas
from tests.deployments import build_fake
from tests.ray.conftest import placement
from tests.stages.models.fake.test_pipeline import (  # noqa: F401 - the tests themselves
    Broken,
    test_chat_speaks_while_it_writes,
    test_leaving_early_frees_every_stage,
    test_speech_gives_its_tones_and_then_its_end,
    test_text_alone_starts_no_talker,
    test_the_same_stages_serve_the_form_without_async_chunks,
)
from tests.stages.test_addresses import (  # noqa: F401 - the test itself
    build_split,
    test_the_client_and_the_next_stage_each_get_what_is_for_them,
)

pytestmark = pytest.mark.ray


@pytest.fixture(
    params=[
        (["ray"] * 3, 1),
        (["ray"] * 3, 2),
        (["thread", "ray", "process"], 2),
        (["process", "ray", "thread"], 1),
    ],
    ids=["ray", "2 on ray", "thread, ray, process", "process, ray, thread"],
    scope="module",
)
async def deployment(request, cluster):
    executors, replicas = request.param
    on = placement(cluster, f"pipelines-{'-'.join(executors)}-{replicas}", replicas)
    deployment = build_fake(*(replace(on, executor=each) for each in executors))
    await deployment.start(60)
    yield deployment
    await deployment.stop()


@pytest.fixture
async def split_handles(placed):
    deployment, handles = build_split(*[placed()] * 3)
    await deployment.start(60)
    yield handles
    await deployment.stop()


async def test_a_stage_that_cannot_load_is_named_and_the_others_are_stopped(placed):
    on = placed()
    fine = build_fake(on, on, on)
    deployment = Deployment([*fine.stages, make_replicas(on, "talker2", Broken)], [], [])
    with pytest.raises(StartError, match=r"talker2.*no weights"):
        await deployment.start(60)
    assert not any(worker.is_up for worker in deployment.workers)


EDGES = {
    ("thread", "thread"): MemoryConnector,
    ("thread", "process"): SharedMemoryEdge,
    ("process", "thread"): SharedMemoryEdge,
    ("process", "process"): SharedMemoryEdge,
}


@pytest.mark.parametrize("sender", ["thread", "process", "ray"])
@pytest.mark.parametrize("receiver", ["thread", "process", "ray"])
def test_an_edge_is_chosen_by_where_its_ends_are_and_only_actors_share_it(sender, receiver):
    edges = []
    for _ in range(2):  # two servers with the same settings
        one, other = (
            make_replicas(Placement(executor=kind), name, FakeTalker)
            for kind, name in ((sender, "a"), (receiver, "b"))
        )
        _, [edge] = wire(
            [
                PipelineStage(one, Role.TALKER, final=False),
                PipelineStage(other, Role.CODE2WAV, final=True),
            ]
        )
        assert type(edge) is EDGES.get((sender, receiver), RemoteEdge)
        edges.append(edge)
    names = {edge.name for edge in edges if isinstance(edge, RemoteEdge)}
    assert len(names) == (0 if "ray" not in (sender, receiver) else 1 if sender == receiver else 2)
    for edge in edges:
        edge.close()
