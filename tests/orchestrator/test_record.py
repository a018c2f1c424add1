"""What is noted of a request: each stage's life, the gate's hold, an early end. Time is virtual."""

import asyncio

import pytest

from orchestrator import AsyncChunkOrchestrator
from stages.contract.work import StageWork
from tests.orchestrator.scripted import ScriptedStage, running, scripted_stages, settle


def about(seconds):
    return pytest.approx(seconds, abs=1e-3)


@pytest.fixture
def stages():
    return scripted_stages()[0]


@pytest.fixture
def orchestrator(stages):
    return AsyncChunkOrchestrator(stages, {0, 2}, lambda *_: None)


async def read(outputs):
    return [output async for output in outputs]


async def test_a_terminal_that_is_held_is_noted_with_its_times(orchestrator, stages):
    async with running(orchestrator), orchestrator.stream(None) as outputs:
        await settle()
        (record,) = outputs.records
        began_at = record.added_at
        assert [stage.submitted_at for stage in record.stages] == [about(began_at)] * 3
        for wait_s, stage in ((0.1, stages[0]), (0.2, stages[2]), (0.3, stages[1])):
            await asyncio.sleep(wait_s)
            assert record.ended_at is None
            stage.report(outputs.request_id, finished=True)
            await settle()
        await read(outputs)
    ended_s = [stage.finished_at - began_at for stage in record.stages]
    assert ended_s == [about(0.1), about(0.6), about(0.3)]
    assert {stage.ending for stage in record.stages} == {"finished"}
    assert record.held
    assert record.all_final_at - began_at == about(0.3)
    assert record.ended_at - began_at == about(0.6)
    assert orchestrator.stats.hold_s.counts.total == about(0.3)


async def test_a_terminal_that_nobody_waits_for_is_not_held(orchestrator, stages):
    async with running(orchestrator), orchestrator.stream(None) as outputs:
        for stage in (stages[1], stages[0], stages[2]):
            stage.report(outputs.request_id, finished=True)
        await read(outputs)
    (record,) = outputs.records
    assert not record.held
    assert record.all_final_at == record.ended_at
    assert orchestrator.stats.hold_s.counts.bucket_counts[0] == 1


async def test_a_client_that_leaves_is_noted_with_the_aborts_that_follow(orchestrator, stages):
    ended = asyncio.Event()
    async with running(orchestrator):
        async with orchestrator.stream(None) as outputs:
            outputs.records[0].on_end = ended.set
            stages[0].report(outputs.request_id, finished=True)
            stages[1].acknowledges = False
            await settle()
        await ended.wait()
    (record,) = outputs.records
    assert [stage.ending for stage in record.stages] == ["finished", "silent", "aborted"]
    assert record.error == "AbortedError"
    assert record.stages[0].aborted_at is None
    assert record.stages[1].aborted_at == record.stages[2].aborted_at == record.closed_at
    assert record.ended_at - record.closed_at == about(0.5)
    assert [stage.num_aborts for stage in orchestrator.stats.stages] == [0, 1, 1]
    assert [stage.num_silent for stage in orchestrator.stats.stages] == [0, 1, 0]
    assert orchestrator.stats.stages[2].abort_s.counts.cumulative[-1] == 1
    assert orchestrator.stats.hold_s.counts.cumulative[-1] == 0


async def test_a_stage_that_fails_and_one_that_dies_are_told_apart(orchestrator, stages):
    async with running(orchestrator):
        async with orchestrator.stream(None) as failing:
            stages[1].report(failing.request_id, finished=True, error=ValueError("no"))
            await read(failing)
        async with orchestrator.stream(None) as dying:
            await settle()
            stages[2].die(RuntimeError("gone"))
            await read(dying)
    assert failing.records[0].stages[1].ending == "failed"
    assert failing.records[0].error == "ValueError"
    assert dying.records[0].stages[2].ending == "died"
    assert dying.records[0].error == "WorkerDiedError"


async def test_the_first_end_of_a_stage_is_the_one_that_is_noted(orchestrator, stages):
    async with running(orchestrator), orchestrator.stream(None) as outputs:
        for error in (None, ValueError("no")):
            stages[1].report(outputs.request_id, finished=True, error=error)
            await asyncio.sleep(0.1)
        await read(outputs)
    (record,) = outputs.records
    assert record.stages[1].ending == "finished"
    assert record.stages[1].finished_at - record.added_at == about(0)


async def test_late_outputs_are_counted_for_their_stage(orchestrator, stages):
    async with running(orchestrator):
        stages[1].report("unknown", 1)
        stages[2].report("unknown", 1)
        stages[2].report("unknown", 2)
        await settle()
    assert [stage.num_dropped for stage in orchestrator.stats.stages] == [0, 1, 2]


async def test_what_a_worker_tells_is_part_of_the_record():
    class TellingStage(ScriptedStage):
        unacknowledged = ()

        def __init__(self):
            super().__init__()
            self.work = StageWork()

        async def wait_until_up(self):
            pass

        def credit(self, request_id, chunks):
            pass

        def work_of(self, request_id):
            return self.work

    stage = TellingStage()
    orchestrator = AsyncChunkOrchestrator([stage], {0}, lambda *_: None)
    async with running(orchestrator), orchestrator.stream(None) as outputs:
        await settle()
        assert outputs.records[0].stages[0].work is stage.work
        stage.report(outputs.request_id, finished=True)
        await read(outputs)
