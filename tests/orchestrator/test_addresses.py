"""Outputs for the client only and for the next stage only, in both forms; roles, and ends."""

import pytest

from orchestrator import AsyncChunkOrchestrator, Orchestrator, OrchOutput
from stages.contract.messages import To
from tests.orchestrator.scripted import CreditedStage, nothing_comes, running, settle, told

FORMS = [AsyncChunkOrchestrator, Orchestrator]


@pytest.fixture
def stages():
    return [CreditedStage(stage_id=k) for k in range(2)]


@pytest.fixture(params=FORMS)
async def orchestrator(request, stages):
    orchestrator = request.param(stages, {0, 1}, lambda _, data: data, roles=("thinker", "talker"))
    async with running(orchestrator):
        await orchestrator.add_request("r1", "hi")
        yield orchestrator


async def test_the_client_gets_nothing_that_is_for_the_next_stage_only(orchestrator, stages):
    stages[0].report("r1", "hidden", to=To.NEXT)
    assert await nothing_comes(orchestrator)
    assert stages[0].credits == [("r1", 1)]
    assert orchestrator.dropped_outputs == 0
    stages[0].report("r1", "seen", to=To.CLIENT)
    assert told(await orchestrator.next_output()) == (0, "seen", False)
    assert stages[0].credits == [("r1", 1)] * 2


async def test_an_end_that_is_not_for_the_client_is_a_terminal_without_data(orchestrator, stages):
    stages[0].report("r1", "end", finished=True, to=To.NEXT)
    assert await nothing_comes(orchestrator)
    stages[1].report("r1", "end", finished=True, to=To.NEXT)
    assert await orchestrator.next_output() == OrchOutput("r1", 1, None, True, role="talker")


async def test_an_output_says_its_role_and_whether_it_is_the_end(orchestrator, stages):
    stages[0].report("r1", "text")
    stages[0].report("r1", "text's end", finished=True)
    await settle()
    stages[1].report("r1", "sound")
    stages[1].report("r1", "sound's end", finished=True)
    outputs = [await orchestrator.next_output() for _ in range(4)]
    assert [(output.role, output.data, output.is_end) for output in outputs] == [
        ("thinker", "text", False),
        ("thinker", "text's end", True),
        ("talker", "sound", False),
        ("talker", "sound's end", True),
    ]


async def test_without_roles_the_role_is_empty(stages):
    async with running(AsyncChunkOrchestrator(stages, {0}, lambda *_: None)) as orchestrator:
        await orchestrator.add_request("r1", "hi", last_stage=0)
        stages[0].report("r1", "end", finished=True)
        assert await orchestrator.next_output() == OrchOutput("r1", 0, "end", True, is_end=True)


async def test_the_first_form_forwards_only_what_is_for_the_next_stage(stages):
    async with running(Orchestrator(stages, {0, 1}, lambda _, data: data)) as orchestrator:
        await orchestrator.add_request("r1", "hi")
        for data, to in (("client's", To.CLIENT), ("next", To.NEXT), ("both", To.BOTH)):
            stages[0].report("r1", data, to=to)
        stages[0].report("r1", "end", finished=True)
        await settle()
        assert stages[1].submits == [("r1", ["next", "both", "end"])]
