"""Who may run, who waits, in which order, and who is told no."""

import asyncio

import anyio
import pytest

from orchestrator import Admission, AsyncChunkOrchestrator
from stages.contract.errors import (
    AbortedError,
    DeadlineError,
    OverloadedError,
    UnavailableError,
)
from tests.orchestrator.scripted import running, scripted_stages, settle, told


async def enter(admission, key, order, group, places=1):
    """Enter in the background; the name and the ticket go into `order` once admitted."""

    async def wait():
        order.append((key, await admission.enter(key, places)))

    group.start_soon(wait)
    await settle()


async def test_beyond_running_and_waiting_a_request_is_refused_at_once():
    admission = Admission(max_running=2, max_waiting=1)
    order = []
    async with anyio.create_task_group() as group:
        for _ in range(3):
            await enter(admission, "a", order, group)
        with pytest.raises(OverloadedError):
            await admission.enter("a")
        stats = admission.stats()
        assert (stats.num_running, stats.num_waiting, stats.num_refused) == (2, 1, 1)
        order[0][1].release()
        await settle()
        assert len(order) == 3


async def test_waiting_requests_start_round_robin_by_key():
    admission = Admission(max_running=1, max_waiting=6)
    first = await admission.enter("a")
    order = []
    async with anyio.create_task_group() as group:
        for key in ("a", "a", "b", "a", "b"):
            await enter(admission, key, order, group)
        tickets = [first]
        for _ in range(5):
            tickets.pop().release()
            await settle()
            tickets.append(order[-1][1])
    assert [key for key, _ in order] == ["a", "b", "a", "b", "a"]


async def test_a_key_may_hold_only_its_share_of_the_waiting_places():
    admission = Admission(max_running=1, max_waiting=4)
    await admission.enter("a")
    order = []
    async with anyio.create_task_group() as group:
        await enter(admission, "b", order, group)
        await enter(admission, "a", order, group)
        await enter(admission, "a", order, group)
        with pytest.raises(OverloadedError):
            await admission.enter("a")
        await enter(admission, "b", order, group)
        assert admission.stats().num_waiting == 4
        group.cancel_scope.cancel()
    assert admission.stats().num_waiting == 0


async def test_a_key_that_fills_the_line_makes_room_for_the_share_of_another():
    admission = Admission(max_running=1, max_waiting=4)
    first = await admission.enter("a")
    order, refused = [], []

    async def enter_as_a(name):
        try:
            order.append((name, await admission.enter("a")))
        except OverloadedError:
            refused.append(name)

    async with anyio.create_task_group() as group:
        for name in ("a1", "a2", "a3", "a4"):
            group.start_soon(enter_as_a, name)
            await settle()
        await enter(admission, "b", order, group)
        await enter(admission, "b", order, group)
        assert refused == ["a4", "a3"]
        for key in ("a", "b"):
            with pytest.raises(OverloadedError):
                await admission.enter(key)
        stats = admission.stats()
        assert (stats.num_waiting, stats.num_refused) == (4, 4)
        first.release()
        for n in range(4):
            await settle()
            order[n][1].release()
    assert [name for name, _ in order] == ["a1", "b", "a2", "b"]
    assert admission.stats().num_running == 0


async def test_one_who_fits_runs_when_the_group_before_it_is_turned_away():
    admission = Admission(max_running=4, max_waiting=4)
    await admission.enter("a")
    order = []

    async def enter_group():
        with pytest.raises(OverloadedError):
            await admission.enter("a", places=4)

    async with anyio.create_task_group() as group:
        group.start_soon(enter_group)
        await settle()
        await enter(admission, "b", order, group)
    assert [key for key, _ in order] == ["b"]
    stats = admission.stats()
    assert (stats.num_running, stats.num_waiting) == (2, 0)


async def test_a_cancelled_group_at_the_head_of_the_line_lets_those_behind_it_in():
    admission = Admission(max_running=2, max_waiting=4)
    await admission.enter()
    order = []
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as group:
            await enter(admission, "a", order, group, places=2)
            await enter(admission, "b", order, tasks)
            assert order == []
            group.cancel_scope.cancel()
        await settle()
        assert [key for key, _ in order] == ["b"]
    stats = admission.stats()
    assert (stats.num_running, stats.num_waiting) == (2, 0)


async def test_a_newcomer_does_not_evict_a_key_that_holds_only_its_share():
    admission = Admission(max_running=1, max_waiting=2)
    first = await admission.enter("a")
    order = []
    async with anyio.create_task_group() as group:
        await enter(admission, "a", order, group)
        await enter(admission, "b", order, group)
        with pytest.raises(OverloadedError):
            await admission.enter("c")
        stats = admission.stats()
        assert (stats.num_waiting, stats.num_refused) == (2, 1)
        first.release()
        await settle()
        order[0][1].release()
    assert [key for key, _ in order] == ["a", "b"]


async def test_one_who_leaves_the_line_makes_room_and_takes_no_place():
    admission = Admission(max_running=1, max_waiting=1)
    first = await admission.enter()
    with anyio.move_on_after(1):
        await admission.enter()
    assert admission.stats().num_waiting == 0
    first.release()
    assert admission.stats().num_running == 0


async def test_one_who_waits_too_long_is_refused_and_leaves_the_line():
    admission = Admission(max_running=1, max_waiting=1, max_wait_s=0.001)
    first = await admission.enter()
    with pytest.raises(OverloadedError, match="no place was free"):
        await admission.enter()
    stats = admission.stats()
    assert (stats.num_running, stats.num_waiting, stats.num_refused) == (1, 0, 1)
    first.release()
    (await admission.enter()).release()


async def test_one_who_leaves_in_the_moment_of_his_turn_gives_the_place_back():
    admission = Admission(max_running=1, max_waiting=1)
    first = await admission.enter()
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(admission.enter())
        await settle()
        first.release()
        waiting.cancel()
    assert waiting.cancelled()
    assert admission.stats().num_running == 0


async def test_one_who_leaves_as_it_is_evicted_gives_no_place_back():
    admission = Admission(max_running=1, max_waiting=2)
    await admission.enter("a")
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(admission.enter("a")) for _ in range(2)]
        await settle()
        newcomer = group.create_task(admission.enter("b"))
        asyncio.get_running_loop().call_soon(waiting[-1].cancel)  # in the turn of the eviction
        await settle()
        stats = admission.stats()
        assert (stats.num_running, stats.num_waiting) == (1, 2)
        for task in (newcomer, *waiting):
            task.cancel()


async def test_a_group_that_can_never_run_is_refused_at_once():
    admission = Admission(max_running=2, max_waiting=8)
    with pytest.raises(OverloadedError):
        await admission.enter(places=3)
    assert admission.stats().num_running == 0


async def test_no_more_is_evicted_than_a_newcomer_needs():
    admission = Admission(max_running=2, max_waiting=4)
    first = await admission.enter("a", places=2)
    order = []

    async def enter_and_be_evicted():
        with pytest.raises(OverloadedError):
            await admission.enter("a", places=2)

    async with anyio.create_task_group() as group:
        await enter(admission, "a", order, group, places=2)
        group.start_soon(enter_and_be_evicted)
        await settle()
        await enter(admission, "b", order, group, places=2)
        assert admission.stats().num_waiting == 4
        first.release()
        await settle()
        order[0][1].release()
    assert [key for key, _ in order] == ["a", "b"]


async def test_a_ticket_is_given_back_once():
    admission = Admission(max_running=2, max_waiting=0)
    ticket, _ = await admission.enter(), await admission.enter()
    ticket.release()
    ticket.release()
    assert admission.stats().num_running == 1


async def test_a_group_enters_whole_or_not_at_all():
    admission = Admission(max_running=4, max_waiting=2)
    await admission.enter(places=2)
    with pytest.raises(OverloadedError):
        await admission.enter(places=3)
    await admission.enter(places=2)
    assert admission.stats().num_running == 4


@pytest.fixture
def stages():
    return scripted_stages(1)[0]


@pytest.fixture
async def orchestrator(stages):
    admission = Admission(max_running=1, max_waiting=1)
    async with running(
        AsyncChunkOrchestrator(stages, {0}, lambda *_: None, admission=admission)
    ) as orchestrator:
        yield orchestrator


async def test_a_place_is_free_again_when_the_request_is_gone_and_not_when_its_client_is(
    orchestrator, stages
):
    stages[0].acknowledges = False
    async with orchestrator.stream("one"):
        pass
    began = asyncio.get_running_loop().time()
    async with orchestrator.stream("two") as outputs:
        assert asyncio.get_running_loop().time() - began == pytest.approx(0.5, abs=0.01)
        stages[0].report(outputs.request_id, "x", finished=True)
        assert told(await anext(outputs)) == (0, "x", True)


async def test_a_place_is_free_again_when_a_request_cannot_be_registered(stages):
    admission = Admission(max_running=2, max_waiting=0)
    pipeline = AsyncChunkOrchestrator(stages, {0}, lambda *_: None, admission=admission)
    async with running(pipeline) as orchestrator:
        stages[0].die(RuntimeError("killed"))
        await settle()
        for _ in range(3):
            with pytest.raises(UnavailableError):
                async with orchestrator.group(["a", "b"]):
                    raise AssertionError("its stage is down")
    assert admission.stats().num_running == 0


async def test_the_deadline_also_bounds_the_wait(orchestrator):
    async with orchestrator.stream("one"):
        with pytest.raises(DeadlineError):
            async with orchestrator.stream("two", deadline_s=3):
                pass
        assert asyncio.get_running_loop().time() == pytest.approx(3, abs=0.01)


async def test_what_is_left_of_the_deadline_after_waiting_still_holds(orchestrator, stages):
    loop = asyncio.get_running_loop()
    async with orchestrator.stream("one") as first:
        loop.call_later(2, stages[0].report, first.request_id, None, True)
        async with orchestrator.stream("two", deadline_s=3) as outputs:
            output = await anext(outputs)
            assert isinstance(output.error, DeadlineError)
            assert loop.time() == pytest.approx(3, abs=0.01)


async def test_who_waits_when_it_ends_is_told_so_and_does_not_run(orchestrator, stages):
    loop = asyncio.get_running_loop()

    async def wait():
        with pytest.raises(AbortedError, match="shutting down"):
            async with orchestrator.stream("two", deadline_s=300):
                pass

    stages[0].acknowledges = False  # the one that runs is given up after half a second
    async with anyio.create_task_group() as group, orchestrator.stream("one"):
        group.start_soon(wait)
        await settle()
        await orchestrator.shutdown()
    assert loop.time() == pytest.approx(0.5, abs=0.01)
    assert len(stages[0].submits) == 1


@pytest.fixture
def roomy():
    return Admission(max_running=3, max_waiting=0)


@pytest.fixture
async def grouping(stages, roomy):
    async with running(
        AsyncChunkOrchestrator(stages, {0}, lambda *_: None, admission=roomy)
    ) as orchestrator:
        yield orchestrator


async def test_a_group_is_one_stream_of_all_its_requests(grouping, stages, roomy):
    async with grouping.group(["a", "b"]) as outputs:
        assert roomy.stats().num_running == 2
        with pytest.raises(OverloadedError):
            async with grouping.group(["c", "d"]):
                raise AssertionError("there was room for one only")
        first, second = outputs.request_ids
        stages[0].report(second, "b", finished=True)
        stages[0].report(first, "a", finished=True)
        assert [(o.index, *told(o)) async for o in outputs] == [
            (1, 0, "b", True),
            (0, 0, "a", True),
        ]
        assert roomy.stats().num_running == 0


async def test_leaving_a_group_ends_those_that_still_run(grouping, stages, roomy):
    async with grouping.group(["a", "b"]) as outputs:
        first, second = outputs.request_ids
        stages[0].report(first, "x", finished=True)
        assert (await anext(outputs)).finished
        assert roomy.stats().num_running == 1
    await settle()
    assert stages[0].aborts == [second]
    assert roomy.stats().num_running == 0
