"""Stages with several workers: who gets a request, who fails with one that dies, what is left.

The state machine drives two pipelines that share workers through any order of reports, failures,
aborts, silence, deaths and returns. `STATE_MACHINE_EXAMPLES` sets how many runs.
"""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from stages.contract.errors import OmniError, UnavailableError, WorkerDiedError
from stages.runtime.worker.control import Submit
from tests.orchestrator.replicas import Fleet, first
from tests.orchestrator.scripted import nothing_comes, settle
from tests.orchestrator.test_state_machine import EXAMPLES
from tests.virtual_clock import VirtualClockLoop


@asynccontextmanager
async def running(*counts):
    fleet = Fleet(*counts)
    await fleet.chat.start()
    await fleet.speech.start()
    await settle()
    try:
        yield fleet
    finally:
        await fleet.chat.shutdown()
        await fleet.speech.shutdown()


async def chat(fleet, *names):
    for name in names:
        await fleet.chat.add_request(name, first(2), deadline_s=20)
    await settle()


async def test_a_request_goes_to_the_worker_with_the_fewest_live_ones():
    async with running(1, 3, 1) as fleet:
        await chat(fleet, *"abcdefg")
        talkers = fleet.stages[1]
        assert sorted(len(talker.open) for talker in talkers) == [2, 2, 3]
        busiest, idle, _ = sorted(talkers, key=lambda talker: -len(talker.open))
        for name in list(idle.open):
            idle.report(name, finished=True)
        await chat(fleet, "h", "i")
        assert {"h", "i"} <= set(idle.open)
        assert len(busiest.open) == 3


async def test_all_pipelines_of_a_worker_count():
    async with running(1, 2, 1) as fleet:
        await chat(fleet, "a")
        await fleet.speech.add_request("b", first(1))
        await chat(fleet, "c")
        await fleet.speech.add_request("d", first(1))
        await settle()
        assert [len(talker.open) for talker in fleet.stages[1]] == [2, 2]


async def test_each_end_knows_the_other_for_the_life_of_the_request():
    async with running(2, 3, 2) as fleet:
        names = [f"r{n}" for n in range(12)]
        await chat(fleet, *names)
        for name in names:
            thinker, talker, sounder = fleet.holders(name)
            at = [
                stage.index(w)
                for stage, w in zip(fleet.stages, (thinker, talker, sounder), strict=True)
            ]
            assert thinker.open[name].outgoing == at[1]
            assert talker.open[name].incoming == at[0]
            assert talker.open[name].outgoing == at[2]
            assert sounder.open[name].incoming == at[1]


async def test_a_death_fails_only_the_requests_bound_to_that_worker():
    async with running(1, 2, 2) as fleet:
        await chat(fleet, *"abcd")
        victim = fleet.stages[1][0]
        lost = set(victim.open)
        victim.die()
        await settle()
        ends = [await fleet.chat.next_output() for _ in lost]
        assert {end.request_id for end in ends} == lost
        assert all(end.finished and isinstance(end.error, WorkerDiedError) for end in ends)
        assert await nothing_comes(fleet.chat)
        assert set(fleet.stages[0][0].open) == set("abcd") - lost
        await chat(fleet, "e")
        assert "e" in fleet.stages[1][1].open


async def test_without_any_worker_a_stage_is_down_and_with_the_first_it_is_back():
    async with running(1, 2, 1) as fleet:
        for talker in fleet.stages[1]:
            talker.die()
        await settle()
        assert not fleet.chat.is_up
        with pytest.raises(UnavailableError):
            await fleet.chat.add_request("a", first(2))
        fleet.stages[1][1].revive()
        assert not fleet.chat.is_up  # who asks now is still refused
        await settle()
        assert fleet.chat.is_up
        await chat(fleet, "b")
        assert "b" in fleet.stages[1][1].open


async def test_a_request_bound_ahead_to_a_worker_that_dies_is_not_bound_anew():
    async with running(1, 2, 1) as fleet:
        thinker, talkers = fleet.stages[0][0], fleet.stages[1]
        obey = thinker.post

        def obey_and_kill(order):
            obey(order)
            if isinstance(order, Submit):
                talkers[order.outgoing].die()

        thinker.post = obey_and_kill
        await chat(fleet, "a")
        end = await fleet.chat.next_output()
        assert isinstance(end.error, OmniError)
        assert fleet.holders("a") == []
        assert [talker.num_live for talker in talkers] == [0, 0]


class Machine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualClockLoop)
        self.ends = Counter()
        self.errors = {}
        self.hurt = set()  # what may end in an error
        self.count = 0
        self.runner.run(self._start())

    async def _start(self):
        self.fleet = Fleet(2, 3, 2)
        self.collectors = []
        for orchestrator in (self.fleet.chat, self.fleet.speech):
            await orchestrator.start()
            collecting = asyncio.get_running_loop().create_task(self._collect(orchestrator))
            self.collectors.append(collecting)
        await settle()

    async def _collect(self, orchestrator):
        while True:
            output = await orchestrator.next_output()
            assert not self.ends[output.request_id]
            if output.finished:
                self.ends[output.request_id] += 1
                self.errors[output.request_id] = output.error

    @property
    def live(self):
        return sorted({*self.fleet.chat.live_requests, *self.fleet.speech.live_requests})

    @property
    def at_work(self):
        live = set(self.live)
        return [(w, name) for w in self.fleet.workers for name in sorted(w.open) if name in live]

    @rule(kind=st.sampled_from(["chat", "text", "speech"]), settles=st.booleans())
    def add(self, kind, settles):
        self.runner.run(self._add(kind, settles))

    async def _add(self, kind, settles):
        name, self.count = f"r{self.count}", self.count + 1
        pipeline = self.fleet.speech if kind == "speech" else self.fleet.chat
        last = {"chat": 2, "text": 0, "speech": 1}[kind]
        try:
            await pipeline.add_request(name, first(last), last, deadline_s=20)
        except UnavailableError:
            assert not pipeline.is_up
        if settles:
            await settle()

    @precondition(lambda self: self.at_work)
    @rule(data=st.data(), finished=st.booleans(), fails=st.integers(0, 5))
    def report(self, data, finished, fails):
        worker, name = data.draw(st.sampled_from(self.at_work))
        error = UnavailableError("scripted") if fails == 0 else None
        self.hurt |= {name} if error else set()
        worker.report(name, "data", finished or error is not None, error)
        self.runner.run(settle())

    @precondition(lambda self: self.at_work)
    @rule(data=st.data())
    def finish(self, data):
        _, name = data.draw(st.sampled_from(self.at_work))
        for worker in self.fleet.holders(name):
            worker.report(name, finished=True)
        self.runner.run(settle())

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def abort(self, data):
        name = data.draw(st.sampled_from(self.live))
        self.hurt.add(name)
        owner = self.fleet.chat if name in self.fleet.chat.live_requests else self.fleet.speech
        owner.abort(name)
        self.runner.run(settle())

    @rule(data=st.data())
    def die(self, data):
        worker = data.draw(st.sampled_from([w for w in self.fleet.workers if w.is_up] or [None]))
        if worker is None:
            return
        for replica in worker.replicas:
            self.hurt |= set(replica.requests)
        stage = next(stage for stage in self.fleet.stages if worker in stage)
        if sum(each.is_up for each in stage) == 1:
            self.hurt |= set(self.live)
        worker.die()
        self.runner.run(settle())

    @rule(data=st.data())
    def come_back(self, data):
        down = [worker for worker in self.fleet.workers if not worker.is_up]
        if down:
            data.draw(st.sampled_from(down)).revive()
            self.runner.run(settle())

    @rule(data=st.data(), silent=st.booleans())
    def fall_silent(self, data, silent):
        data.draw(st.sampled_from(self.fleet.workers)).silent = silent

    @rule(seconds=st.sampled_from([0.1, 0.1, 0.6, 2.1, 25.0]))
    def wait(self, seconds):
        if seconds > 2:
            self.hurt |= set(self.live)
        self.runner.run(asyncio.sleep(seconds))

    @invariant()
    def only_who_was_hurt_ends_in_an_error(self):
        assert {name for name, error in self.errors.items() if error is not None} <= self.hurt

    @invariant()
    def a_worker_counts_what_it_holds(self):
        for worker in self.fleet.workers:
            bound = {name for replica in worker.replicas for name in replica.requests}
            assert set(worker.open) <= bound
            assert worker.is_up or not bound
            assert worker.num_live == len(bound)

    def teardown(self):
        self.runner.run(self._end())
        self.runner.close()

    async def _end(self):
        await asyncio.sleep(25)
        assert self.live == []
        for worker in self.fleet.workers:
            if any(replica.aborts for replica in worker.replicas):
                worker.die()  # what a supervisor does with it
                worker.revive()
        await settle()
        assert [worker.num_live for worker in self.fleet.workers] == [0] * 7
        for handle in (*self.fleet.chat_handles, *self.fleet.speech_handles):
            assert handle.num_bound == 0
        for task in self.collectors:
            task.cancel()
        await self.fleet.chat.shutdown()
        await self.fleet.speech.shutdown()


Machine.TestCase.settings = settings(
    max_examples=EXAMPLES // 2,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestReplicas = Machine.TestCase
