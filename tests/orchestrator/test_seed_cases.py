"""The cases of the document that this project began with, literally, with its values and order."""

import asyncio

import pytest

from orchestrator import AsyncChunkOrchestrator, Orchestrator
from tests.orchestrator.scripted import (
    nothing_comes,
    running,
    scripted_stages,
    settle,
    told,
)

FINAL = {0, 2}


def warm(stage_id, prompt):
    return f"warm{stage_id}:{len(prompt)}"


@pytest.fixture
def stages_and_journal():
    return scripted_stages()


@pytest.fixture
def stages(stages_and_journal):
    return stages_and_journal[0]


@pytest.fixture
async def orchestrator(stages):
    async with running(AsyncChunkOrchestrator(stages, FINAL, warm)) as orchestrator:
        yield orchestrator


async def test_example_1_the_terminal_waits_for_the_late_talker(orchestrator, stages_and_journal):
    (s0, s1, s2), journal = stages_and_journal
    await orchestrator.add_request("r1", "hi there")
    await settle()
    assert journal == [(0, "r1", "hi there"), (1, "r1", "warm1:8"), (2, "r1", "warm2:8")]
    s0.report("r1", "hi")
    assert told(await orchestrator.next_output()) == (0, "hi", False)
    s0.report("r1", "there", finished=True)
    assert told(await orchestrator.next_output()) == (0, "there", False)
    s2.report("r1", "wav:HI")
    assert told(await orchestrator.next_output()) == (2, "wav:HI", False)
    s2.report("r1", "wav:THERE", finished=True)
    assert await nothing_comes(orchestrator)
    s1.report("r1", None, finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav:THERE", True)
    s2.report("r1", "wav:EXTRA")
    assert await nothing_comes(orchestrator)
    assert orchestrator.dropped_outputs == 1


async def test_example_2_in_normal_order_nothing_is_held(orchestrator, stages):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", "hi")
    assert told(await orchestrator.next_output()) == (0, "hi", False)
    s0.report("r1", "there", finished=True)
    assert told(await orchestrator.next_output()) == (0, "there", False)
    s1.report("r1", "tok", finished=True)
    assert await nothing_comes(orchestrator)
    s2.report("r1", "wav:HI")
    assert told(await orchestrator.next_output()) == (2, "wav:HI", False)
    s2.report("r1", "wav:THERE", finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav:THERE", True)


async def test_example_3_the_terminal_is_of_the_stage_that_made_it_true(orchestrator, stages):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", "hi")
    assert told(await orchestrator.next_output()) == (0, "hi", False)
    s2.report("r1", "wav:HI", finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav:HI", False)
    s1.report("r1", None, finished=True)
    assert await nothing_comes(orchestrator)
    s0.report("r1", "there", finished=True)
    assert told(await orchestrator.next_output()) == (0, "there", True)


async def test_the_talker_reports_200_ms_late(orchestrator, stages):
    s0, s1, s2 = stages
    loop = asyncio.get_running_loop()
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", "there", finished=True)
    s2.report("r1", "wav:THERE", finished=True)
    assert told(await orchestrator.next_output()) == (0, "there", False)
    before = loop.time()
    loop.call_later(0.2, s1.report, "r1", None, True)
    assert told(await orchestrator.next_output()) == (2, "wav:THERE", True)
    assert loop.time() - before == pytest.approx(0.2, abs=1e-3)


async def test_20_requests_with_late_completion_have_one_terminal_each_as_the_last(
    orchestrator, stages
):
    s0, s1, s2 = stages
    loop = asyncio.get_running_loop()
    ids = [f"r{n}" for n in range(20)]
    for n, request_id in enumerate(ids):
        await orchestrator.add_request(request_id, "hi there")
        s0.report(request_id, f"text{n}", finished=True)
        s2.report(request_id, f"wav{n}", finished=True)
        loop.call_later(0.2 - 0.01 * n, s1.report, request_id, None, True)
    seen = {request_id: [] for request_id in ids}
    for _ in range(40):
        output = await orchestrator.next_output()
        seen[output.request_id].append(told(output))
    assert await nothing_comes(orchestrator)
    for n, request_id in enumerate(ids):
        assert seen[request_id] == [(0, f"text{n}", False), (2, f"wav{n}", True)]
    assert orchestrator.dropped_outputs == 0
    for stage in stages:
        assert [request_id for request_id, _ in stage.submits] == ids


async def test_a_late_output_is_dropped_and_revives_nothing(orchestrator, stages):
    s0, _s1, _s2 = stages
    await orchestrator.add_request("r1", "hi there", last_stage=0)
    s0.report("r1", "hi", finished=True)
    assert told(await orchestrator.next_output()) == (0, "hi", True)
    for stage in stages:
        stage.report("r1", "late", finished=True)
    assert await nothing_comes(orchestrator)
    assert orchestrator.dropped_outputs == 3
    assert [len(stage.submits) for stage in stages] == [1, 0, 0]


# The seven key questions.


async def test_question_1_outputs_between_two_submits_see_the_whole_submitted_set(stages):
    s0, s1, s2 = stages
    gate = asyncio.Event()

    async def slow_submit(request_id, stage_input):
        s1.submits.append((request_id, stage_input))
        await gate.wait()

    s1.submit = slow_submit
    async with running(AsyncChunkOrchestrator(stages, FINAL, warm)) as orchestrator:
        await orchestrator.add_request("r1", "hi there")
        await settle()
        s0.report("r1", "there", finished=True)
        s2.report("r1", "wav:THERE", finished=True)
        assert told(await orchestrator.next_output()) == (0, "there", False)
        assert await nothing_comes(orchestrator)
        gate.set()
        s1.report("r1", None, finished=True)
        assert told(await orchestrator.next_output()) == (2, "wav:THERE", True)
        assert [len(stage.submits) for stage in stages] == [1, 1, 1]


async def test_question_2_the_held_terminal_is_sent_as_it_was_built(orchestrator, stages):
    s0, s1, s2 = stages
    data = object()
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", None, finished=True)
    s2.report("r1", data, finished=True)
    await orchestrator.next_output()
    s1.report("r1", "never shown", finished=True)
    assert (await orchestrator.next_output()).data is data


async def test_question_3_a_stage_that_is_not_final_releases_nothing_while_others_are_out(
    orchestrator, stages
):
    _s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s1.report("r1", None, finished=True)
    assert await nothing_comes(orchestrator)
    s2.report("r1", "wav", finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav", False)


async def test_question_4_all_final_sets_the_value_and_all_done_the_moment(orchestrator, stages):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s2.report("r1", "wav", finished=True)
    assert (await orchestrator.next_output()).finished is False
    s0.report("r1", "text", finished=True)
    assert await nothing_comes(orchestrator)
    s1.report("r1", None, finished=True)
    assert told(await orchestrator.next_output()) == (0, "text", True)


async def test_question_5_data_of_a_stage_that_is_not_final_never_reaches_the_client(
    orchestrator, stages
):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s1.report("r1", "codes")
    s1.report("r1", "codes", finished=True)
    s0.report("r1", "text", finished=True)
    s2.report("r1", "wav", finished=True)
    outputs = [told(await orchestrator.next_output()) for _ in range(2)]
    assert outputs == [(0, "text", False), (2, "wav", True)]


def test_question_6_the_second_form_is_used_as_the_first_is():
    """It replaces how a request is added and how an output is handled, and nothing that is used."""
    assert issubclass(AsyncChunkOrchestrator, Orchestrator)
    assert [name for name in vars(AsyncChunkOrchestrator) if not name.startswith("_")] == []


async def test_question_7_an_unfinished_report_changes_nothing_once_the_terminal_is_held(
    orchestrator, stages
):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", "text", finished=True)
    s2.report("r1", "wav", finished=True)
    await orchestrator.next_output()
    s1.report("r1", "codes")
    assert await nothing_comes(orchestrator)
    s1.report("r1", None, finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav", True)
    assert orchestrator.dropped_outputs == 0


async def test_question_7_a_held_terminal_is_not_replaced_by_what_a_final_stage_reports_later(
    orchestrator, stages
):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi there")
    s0.report("r1", "text", finished=True)
    s2.report("r1", "wav", finished=True)
    await orchestrator.next_output()
    s2.report("r1", "more wav")
    s0.report("r1", "more text", finished=True)
    assert await nothing_comes(orchestrator)
    assert orchestrator.dropped_outputs == 2
    s1.report("r1", None, finished=True)
    assert told(await orchestrator.next_output()) == (2, "wav", True)
    assert await nothing_comes(orchestrator)
    assert [stage.num_dropped for stage in orchestrator.stats.stages] == [1, 0, 1]


# The first form.


async def test_without_async_chunks_each_stage_starts_with_what_the_one_before_gave(
    stages_and_journal,
):
    stages, journal = stages_and_journal
    s0, s1, s2 = stages

    def forward(stage_id, data):
        return f"to{stage_id}:" + "+".join(data)

    async with running(Orchestrator(stages, FINAL, forward)) as orchestrator:
        await orchestrator.add_request("r1", "hi there")
        s0.report("r1", "hi")
        assert told(await orchestrator.next_output()) == (0, "hi", False)
        assert journal == [(0, "r1", "hi there")]
        s0.report("r1", "there", finished=True)
        assert told(await orchestrator.next_output()) == (0, "there", False)
        s1.report("r1", "codes")
        s1.report("r1", None, finished=True)
        assert await nothing_comes(orchestrator)
        assert journal[1:] == [(1, "r1", "to1:hi+there"), (2, "r1", "to2:codes")]
        s2.report("r1", "wav", finished=True)
        assert told(await orchestrator.next_output()) == (2, "wav", True)


async def test_without_async_chunks_the_last_stage_must_be_final(stages):
    async with running(Orchestrator(stages, FINAL, lambda *_: None)) as orchestrator:
        with pytest.raises(ValueError, match="not a final stage"):
            await orchestrator.add_request("r1", "hi", last_stage=1)
        await orchestrator.add_request("r1", "hi", last_stage=0)
        stages[0].report("r1", "text", finished=True)
        assert told(await orchestrator.next_output()) == (0, "text", True)
        assert stages[1].submits == []
