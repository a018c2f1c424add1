"""Errors, aborts, deadlines, deaths and silence: one terminal each, and nothing left."""

import asyncio

import anyio
import pytest

from orchestrator import AsyncChunkOrchestrator, Orchestrator
from orchestrator.aborts import Aborts
from stages.contract.errors import (
    AbortedError,
    DeadlineError,
    RequestError,
    UnavailableError,
    WorkerDiedError,
)
from tests.orchestrator.scripted import (
    CreditedStage,
    nothing_comes,
    running,
    scripted_stages,
    settle,
    told,
)


@pytest.fixture
def stages():
    return scripted_stages()[0]


@pytest.fixture
def silent():
    return []


@pytest.fixture
async def orchestrator(stages, silent):
    orchestrator = AsyncChunkOrchestrator(
        stages, {0, 2}, lambda k, _prompt: f"warm{k}", on_silent=silent.append
    )
    async with running(orchestrator):
        yield orchestrator


async def test_an_error_aborts_the_other_stages_and_is_the_one_terminal(orchestrator, stages):
    s0, s1, s2 = stages
    error = RequestError("r1", "boom")
    await orchestrator.add_request("r1", "hi")
    s0.report("r1", "text")
    await orchestrator.next_output()
    s1.report("r1", None, finished=True, error=error)
    output = await orchestrator.next_output()
    assert (output.stage_id, output.data, output.finished, output.error) == (1, None, True, error)
    assert [stage.aborts for stage in stages] == [["r1"], [], ["r1"]]
    s2.report("r1", "late", finished=True)
    assert await nothing_comes(orchestrator)
    assert orchestrator.dropped_outputs == 1


async def test_the_error_waits_for_the_acknowledgements_but_not_longer_than_half_a_second(
    orchestrator, stages, silent
):
    s0, _s1, s2 = stages
    s2.acknowledges = False
    await orchestrator.add_request("r1", "hi")
    s0.report("r1", None, finished=True, error=RequestError("r1", "boom"))
    assert await nothing_comes(orchestrator)
    output = await orchestrator.next_output()
    assert isinstance(output.error, RequestError)
    assert asyncio.get_running_loop().time() == pytest.approx(0.5, abs=0.01)
    assert silent == [2]


async def test_outputs_of_a_closing_request_are_discarded_and_still_count_as_finished(
    orchestrator, stages, silent
):
    s0, _s1, s2 = stages
    s2.acknowledges = False
    await orchestrator.add_request("r1", "hi")
    s0.report("r1", None, finished=True, error=RequestError("r1", "boom"))
    await settle()
    s2.report("r1", "wav")
    s2.report("r1", "wav", finished=True)
    output = await orchestrator.next_output()
    assert output.error is not None
    assert output.finished
    assert silent == []


async def test_a_stage_that_finishes_in_place_of_its_acknowledgement_is_not_silent(
    orchestrator, stages, silent
):
    s0, s1, s2 = stages
    s0.acknowledges = s2.acknowledges = False
    await orchestrator.add_request("r1", "hi")
    s1.report("r1", None, finished=True, error=RequestError("r1", "boom"))
    await settle()
    s0.report("r1", None, finished=True)
    assert isinstance((await orchestrator.next_output()).error, RequestError)
    assert silent == [2]


async def test_the_first_error_is_the_one_that_the_client_gets(orchestrator, stages):
    stages[0].acknowledges = False
    await orchestrator.add_request("r1", "hi")
    stages[1].report("r1", None, finished=True, error=RequestError("r1", "boom"))
    await settle()
    orchestrator.abort("r1")
    stages[2].die(RuntimeError("killed"))
    output = await orchestrator.next_output()
    assert (output.stage_id, type(output.error)) == (1, RequestError)


async def test_a_deadline_does_not_end_a_request_whose_terminal_is_held(orchestrator, stages):
    s0, _s1, s2 = stages
    await orchestrator.add_request("r1", "hi", deadline_s=1)
    s0.report("r1", "text", finished=True)
    s2.report("r1", "wav", finished=True)
    await orchestrator.next_output()
    assert told(await orchestrator.next_output()) == (2, "wav", True)
    assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.01)


async def test_a_silent_stage_is_aborted_after_the_drain_time_and_the_terminal_goes_out(
    orchestrator, stages
):
    s0, s1, s2 = stages
    await orchestrator.add_request("r1", "hi")
    s0.report("r1", "text", finished=True)
    s2.report("r1", "wav", finished=True)
    await orchestrator.next_output()
    assert told(await orchestrator.next_output()) == (2, "wav", True)
    assert s1.aborts == ["r1"]
    assert orchestrator.stats.num_drain_timeouts == 1
    assert asyncio.get_running_loop().time() == pytest.approx(2.0, abs=0.01)


async def test_a_defect_that_a_timer_leads_to_ends_every_request(stages, monkeypatch):
    def is_broken(_aborts, _state):
        raise ZeroDivisionError

    async def note_ends(orchestrator, ended):
        while True:
            output = await orchestrator.next_output()
            if output.finished:
                ended.append(output.request_id)

    orchestrator = AsyncChunkOrchestrator(stages, {0, 2}, lambda k, _prompt: f"warm{k}")
    monkeypatch.setattr(Aborts, "abort_rest", is_broken)
    ended = []
    with pytest.RaisesGroup(ZeroDivisionError):
        async with running(orchestrator):
            await orchestrator.add_request("r1", "hi")
            await orchestrator.add_request("r2", "hi")
            stages[0].report("r1", "text", finished=True)
            stages[2].report("r1", "wav", finished=True)
            with pytest.raises(AbortedError):
                await note_ends(orchestrator, ended)
    assert sorted(ended) == ["r1", "r2"]
    assert not orchestrator.is_up
    with pytest.raises(AbortedError):
        await orchestrator.add_request("r3", "hi")


async def test_a_deadline_ends_a_request_whose_stage_stalls(orchestrator, stages):
    await orchestrator.add_request("r1", "hi", deadline_s=3)
    output = await orchestrator.next_output()
    assert isinstance(output.error, DeadlineError)
    assert [stage.aborts for stage in stages] == [["r1"]] * 3
    assert asyncio.get_running_loop().time() == pytest.approx(3, abs=0.01)


async def test_a_worker_that_dies_fails_what_it_held_and_nothing_else(orchestrator, stages):
    s0, s1, s2 = stages
    await orchestrator.add_request("held", "hi")
    await orchestrator.add_request("text only", "hi", last_stage=0)
    await orchestrator.add_request("over", "hi")
    s2.report("over", "wav", finished=True)
    await orchestrator.next_output()
    s2.die(RuntimeError("killed"))
    output = await orchestrator.next_output()
    assert (output.request_id, type(output.error)) == ("held", WorkerDiedError)
    s0.report("text only", "text", finished=True)
    assert told(await orchestrator.next_output()) == (0, "text", True)
    s0.report("over", "text", finished=True)
    s1.report("over", None, finished=True)
    assert told(await orchestrator.next_output()) == (0, "text", True)
    with pytest.raises(UnavailableError):
        await orchestrator.add_request("new", "hi")


async def test_without_async_chunks_a_stage_that_is_down_fails_the_request_that_comes_to_it(stages):
    async with running(Orchestrator(stages, {0, 2}, lambda *_: None)) as orchestrator:
        await orchestrator.add_request("r1", "hi")
        stages[1].die(RuntimeError("killed"))
        assert await nothing_comes(orchestrator)
        stages[0].report("r1", "text", finished=True)
        assert told(await orchestrator.next_output()) == (0, "text", False)
        output = await orchestrator.next_output()
        assert (output.stage_id, type(output.error)) == (1, UnavailableError)
        assert stages[1].submits == []


async def test_without_async_chunks_a_second_report_of_the_end_starts_no_stage_again(stages):
    async with running(Orchestrator(stages, {0, 2}, lambda *_: None)) as orchestrator:
        await orchestrator.add_request("r1", "hi")
        stages[0].report("r1", "text", finished=True)
        stages[0].report("r1", None, finished=True)
        await settle()
        assert [len(stage.submits) for stage in stages] == [1, 1, 0]


async def test_a_submit_that_fails_ends_the_request_and_every_stage_gets_one_abort(
    orchestrator, stages
):
    stages[1].submit_error = RuntimeError("full")
    await orchestrator.add_request("r1", "hi")
    output = await orchestrator.next_output()
    assert (output.stage_id, type(output.error)) == (1, RequestError)
    assert "full" in str(output.error)
    assert [stage.aborts for stage in stages] == [["r1"]] * 3
    assert await nothing_comes(orchestrator)


@pytest.mark.parametrize("acknowledges", [True, False], ids=["it is gone", "it is closing"])
async def test_a_request_aborted_before_its_submits_gets_one_abort_in_their_place(
    orchestrator, stages, acknowledges
):
    """Its submits wait behind that of another request, and come to their turn after the abort."""
    stages[0].accepts.clear()
    await orchestrator.add_request("before", "hi")
    await orchestrator.add_request("r1", "hi")
    await settle()
    for stage in stages:
        stage.acknowledges = acknowledges
    orchestrator.abort("r1")
    has_ended = not await nothing_comes(orchestrator)
    assert has_ended == acknowledges
    stages[0].accepts.set()
    await settle()
    assert [stage.submits[0][0] for stage in stages] == ["before"] * 3
    assert [len(stage.submits) for stage in stages] == [1] * 3
    assert [stage.aborts for stage in stages] == [["r1"]] * 3


async def test_an_abort_before_the_first_turn_of_the_loop_ends_the_request(orchestrator, stages):
    await orchestrator.add_request("r1", "hi")
    orchestrator.abort("r1")
    output = await orchestrator.next_output()
    assert isinstance(output.error, AbortedError)
    assert [stage.aborts for stage in stages] == [["r1"]] * 3


async def test_an_id_that_is_live_and_a_request_without_a_final_stage_are_refused(stages):
    async with running(AsyncChunkOrchestrator(stages, {2}, lambda *_: None)) as orchestrator:
        await orchestrator.add_request("r1", "hi")
        with pytest.raises(ValueError, match="is live"):
            await orchestrator.add_request("r1", "hi")
        with pytest.raises(ValueError, match="no final stage"):
            await orchestrator.add_request("r2", "hi", last_stage=1)
        with pytest.raises(ValueError, match="not one of 3 stages"):
            await orchestrator.add_request("r3", "hi", last_stage=3)


async def test_shutdown_gives_every_live_request_its_error_terminal(stages):
    orchestrator = AsyncChunkOrchestrator(stages, {0, 2}, lambda *_: None)
    await orchestrator.start()
    stages[1].acknowledges = False
    async with anyio.create_task_group() as group, orchestrator.stream("hi") as outputs:
        await settle()
        group.start_soon(orchestrator.shutdown)
        output = await anext(outputs)
        assert output.finished
        assert isinstance(output.error, AbortedError)


async def test_a_stream_ends_with_its_terminal_and_stays_out_of_next_output(orchestrator, stages):
    s0, s1, s2 = stages
    async with orchestrator.stream("hi") as outputs:
        await settle()
        (request_id, _prompt) = s0.submits[0]
        s0.report(request_id, "text", finished=True)
        s1.report(request_id, None, finished=True)
        s2.report(request_id, "wav", finished=True)
        seen = [told(output) async for output in outputs]
    assert seen == [(0, "text", False), (2, "wav", True)]
    assert await nothing_comes(orchestrator)
    assert [stage.aborts for stage in stages] == [[], [], []]


async def test_leaving_a_stream_early_aborts_every_stage(orchestrator, stages):
    async with orchestrator.stream("hi") as outputs:
        stages[0].report(outputs.request_id, "text")
        await anext(outputs)
    await settle()
    assert [stage.aborts for stage in stages] == [[outputs.request_id]] * 3
    assert await nothing_comes(orchestrator)


async def test_two_streams_with_the_same_prompt_have_ids_of_their_own(orchestrator):
    async with orchestrator.stream("hi") as one, orchestrator.stream("hi") as other:
        assert one.request_id != other.request_id


async def test_credit_goes_back_when_the_next_output_is_asked_for():
    stage = CreditedStage()
    async with running(AsyncChunkOrchestrator([stage], {0}, lambda *_: None)) as orchestrator:
        async with orchestrator.stream("hi") as outputs:
            stage.report(outputs.request_id, "a")
            await anext(outputs)
            assert stage.credits == []
            stage.report(outputs.request_id, "b", finished=True)
            await anext(outputs)
            assert stage.credits == [(outputs.request_id, 1)]


async def test_credit_goes_back_at_once_for_what_no_reader_gets():
    stages = [CreditedStage(stage_id=k) for k in range(2)]
    async with running(AsyncChunkOrchestrator(stages, {1}, lambda *_: None)) as orchestrator:
        await orchestrator.add_request("r1", "hi")
        stages[0].report("r1", "codes")
        await settle()
        assert stages[0].credits == [("r1", 1)]
        stages[1].report("r1", "wav")
        assert told(await orchestrator.next_output()) == (1, "wav", False)
        stages[1].report("r1", "end", finished=True)
        stages[1].report("r1", "after the terminal was built")
        await settle()
        assert stages[1].credits == [("r1", 1)] * 2
        stages[0].report("r1", None, finished=True)
        assert told(await orchestrator.next_output()) == (1, "end", True)
