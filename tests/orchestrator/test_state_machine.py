"""Any order of outputs with any address, errors, aborts, deaths, silence, leaving and late outputs;
I1 to I10 hold.

Hypothesis drives both forms over scripted stages on a virtual clock and looks after every step.
`STATE_MACHINE_EXAMPLES` sets how many runs (`make verify` sets many).
"""

import asyncio
import os  # the tests' own knob
from collections import Counter, defaultdict

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from orchestrator import AsyncChunkOrchestrator, Orchestrator
from stages.contract.errors import (
    AbortedError,
    DeadlineError,
    OmniError,
    RequestError,
    UnavailableError,
    WorkerDiedError,
)
from stages.contract.messages import To
from tests.orchestrator.scripted import ScriptedStage, settle
from tests.virtual_clock import VirtualClockLoop

EXAMPLES = int(os.environ.get("STATE_MACHINE_EXAMPLES", "400"))  # noqa: TID251
FINAL = {0, 2}
ROLES = ("thinker", "talker", "code2wav")
DEADLINE_S = 20.0
STAGES = st.integers(0, 2)
ADDRESSES = st.sampled_from([To.BOTH, To.BOTH, To.CLIENT, To.NEXT])


class WorkerStage(ScriptedStage):
    """A scripted stage that can die and come back."""

    unacknowledged = ()

    def __init__(self, stage_id):
        super().__init__(stage_id=stage_id)
        self.open = set()  # what a real worker would hold
        self.unacknowledged = set()  # told to abort, and silent
        self.credits = Counter()
        self.alive = asyncio.Event()
        self.alive.set()

    async def submit(self, request_id, stage_input):
        await super().submit(request_id, stage_input)
        self.open.add(request_id)

    async def abort(self, request_id):
        self.unacknowledged.add(request_id)
        await super().abort(request_id)
        self.unacknowledged.discard(request_id)
        self.open.discard(request_id)

    async def wait_until_up(self):
        await self.alive.wait()

    def work_of(self, request_id):
        return None

    def credit(self, request_id, chunks):
        self.credits[request_id] += chunks

    def report(self, request_id, data=None, finished=False, error=None, to=To.BOTH):
        if finished:
            self.open.discard(request_id)
        super().report(request_id, data, finished, error, to)


class Life:
    """What the test knows of one request."""

    def __init__(self, last_stage, streamed, added_at):
        self.last_stage = last_stage
        self.added_at = added_at
        self.streamed = streamed
        self.reading = True
        self.seen = []
        # Data by stage, while the request was live: all, those for either side, and ends.
        self.reported = defaultdict(list)
        self.for_client = defaultdict(list)
        self.for_next = defaultdict(list)
        self.ends = []
        self.causes = []  # errors of stages, and kinds of errors: what may be its end

    def report(self, stage, name, finished=False, empty=False, to=To.BOTH):
        """Let `stage` report the next data of this request, which is called `name`."""
        key = stage.stage_id
        value = None if empty else (key, len(self.reported[key]))
        if value is not None:
            self.reported[key].append(value)
            if to in (To.CLIENT, To.BOTH):
                self.for_client[key].append(value)
            if to in (To.NEXT, To.BOTH):
                self.for_next[key].append(value)
            if finished:
                self.ends.append(value)
        stage.report(name, value, finished, to=to)


class Machine(RuleBasedStateMachine):
    form = AsyncChunkOrchestrator
    not_begun = None  # what a request ends in whose stage dies before it was begun

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualClockLoop)
        self.lives = {}
        self.readers = {}
        self.count = 0
        self.runner.run(self._start())

    async def _start(self):
        self.stages = [WorkerStage(k) for k in range(3)]
        self.orchestrator = self.form(self.stages, FINAL, lambda *given: given, roles=ROLES)
        await self.orchestrator.start()
        await settle()
        self.base_tasks = len(asyncio.all_tasks())
        self.collector = asyncio.get_running_loop().create_task(self._collect())

    async def _collect(self):
        while True:
            output = await self.orchestrator.next_output()
            self.lives[output.request_id].seen.append(output)

    @property
    def live(self):
        """Oldest first: ids count on from run to run, and by name a replayed run would differ."""
        return [name for name in self.lives if name in self.orchestrator.live_requests]

    @property
    def now(self):
        return self.runner.get_loop().time()

    # What can happen.

    @precondition(lambda self: len(self.live) < 3)
    @rule(last_stage=st.sampled_from([2, 2, 0]), streamed=st.booleans())
    def add(self, last_stage, streamed):
        self.runner.run(self._add(last_stage, streamed))

    async def _add(self, last_stage, streamed):
        life = Life(last_stage, streamed, self.now)
        try:
            if streamed:
                await self._add_stream(life)
            else:
                name = f"client-{self.count}"
                self.count += 1
                await self.orchestrator.add_request(name, "prompt", last_stage, DEADLINE_S)
                self.lives[name] = life
        except OmniError:
            assert not self.orchestrator.is_up
        await settle()

    async def _add_stream(self, life):
        scope = self.orchestrator.stream(
            "prompt", last_stage=life.last_stage, deadline_s=DEADLINE_S
        )
        outputs = await scope.__aenter__()
        self.lives[outputs.request_id] = life
        self.readers[outputs.request_id] = (scope, outputs)

    @precondition(lambda self: any(not self.lives[name].streamed for name in self.live))
    @rule(data=st.data())
    def add_an_id_that_is_live(self, data):
        name = data.draw(st.sampled_from([n for n in self.live if not self.lives[n].streamed]))
        with pytest.raises((ValueError, OmniError)):
            self.runner.run(self.orchestrator.add_request(name, "prompt"))

    @property
    def at_work(self):
        """The stages that hold a live request, with the request."""
        live = self.live
        return [(k, name) for k, s in enumerate(self.stages) for name in live if name in s.open]

    @precondition(lambda self: self.at_work)
    @rule(data=st.data(), finished=st.booleans(), empty=st.booleans(), to=ADDRESSES)
    def report(self, data, finished, empty, to):
        stage_id, name = data.draw(st.sampled_from(self.at_work))
        self.lives[name].report(self.stages[stage_id], name, finished, empty, to)
        self.runner.run(settle())

    @precondition(lambda self: self.at_work)
    @rule(order=st.permutations([0, 1, 2]), settles=st.booleans())
    def finish_all_stages(self, order, settles):
        """Every stage that holds the oldest request reports its end, in some order."""
        name = self.live[0]
        for stage_id in order:
            if name in self.stages[stage_id].open:
                self.lives[name].report(self.stages[stage_id], name, finished=True)
                if settles:
                    self.runner.run(settle())
                    self.check_all()
        self.runner.run(settle())

    def check_all(self):
        """The invariants, in the middle of a rule."""
        self.one_terminal_and_nothing_after_it()
        self.a_terminal_means_that_no_stage_is_at_work_for_it()
        self.the_client_sees_final_stages_in_their_order()

    @precondition(lambda self: self.at_work)
    @rule(data=st.data())
    def fail(self, data):
        stage_id, name = data.draw(st.sampled_from(self.at_work))
        error = RequestError(name, "scripted")
        self.lives[name].causes.append(error)
        self.stages[stage_id].report(name, None, True, error)
        self.runner.run(settle())

    @precondition(lambda self: len(self.lives) > len(self.live))
    @rule(data=st.data(), stage_id=STAGES, finished=st.booleans())
    def report_late(self, data, stage_id, finished):
        gone = [name for name in self.lives if name not in self.orchestrator.live_requests]
        dropped = self.orchestrator.dropped_outputs
        if self.stages[stage_id].alive.is_set():
            self.stages[stage_id].report(data.draw(st.sampled_from(gone)), "late", finished)
            self.runner.run(settle())
            assert self.orchestrator.dropped_outputs == dropped + 1

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def abort(self, data):
        name = data.draw(st.sampled_from(self.live))
        self.lives[name].causes.append(AbortedError)
        self.orchestrator.abort(name)
        self.runner.run(settle())

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def leave(self, data):
        name = data.draw(st.sampled_from(list(self.readers)))
        scope, _ = self.readers.pop(name)
        self.lives[name].reading = False
        self.runner.run(scope.__aexit__(None, None, None))
        self.runner.run(settle())

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def read(self, data):
        name = data.draw(st.sampled_from(list(self.readers)))
        self.runner.run(self._read(name))

    async def _read(self, name):
        _, outputs = self.readers[name]
        try:
            async with asyncio.timeout(1e-6):
                self.lives[name].seen.append(await anext(outputs))
        except (TimeoutError, StopAsyncIteration):
            pass

    @rule(stage_id=STAGES, really=st.integers(0, 3))
    def die(self, stage_id, really):
        stage = self.stages[stage_id]
        if stage.alive.is_set() and really == 0:
            stage.alive.clear()
            for name in self.live:
                died = WorkerDiedError if name in stage.open else self.not_begun
                self.lives[name].causes.append(died)
            stage.open.clear()
            stage.die(RuntimeError("scripted death"))
            self.runner.run(settle())

    @precondition(lambda self: any(not stage.alive.is_set() for stage in self.stages))
    @rule()
    def come_back(self):
        for stage in self.stages:
            stage.alive.set()
        self.runner.run(settle())
        assert self.orchestrator.is_up

    @rule(stage_id=STAGES, acknowledges=st.booleans())
    def fall_silent(self, stage_id, acknowledges):
        self.stages[stage_id].acknowledges = acknowledges

    @rule(seconds=st.sampled_from([0.1, 0.1, 0.1, 0.6, 2.1, 25.0]))
    def wait(self, seconds):
        self.runner.run(asyncio.sleep(seconds))
        if seconds > DEADLINE_S + 3:
            assert self.live == []

    # What always holds.

    @invariant()
    def one_terminal_and_nothing_after_it(self):
        for name, life in self.lives.items():
            ends = [output.finished for output in life.seen]
            assert sum(ends) <= 1, name
            assert not any(ends[:-1]), name

    @invariant()
    def a_terminal_means_that_no_stage_is_at_work_for_it(self):
        """I2, I8: each has finished, acknowledged its abort, died, or kept silent too long."""
        for name, life in self.lives.items():
            if life.seen and life.seen[-1].finished:
                assert name not in self.orchestrator.live_requests
                for stage in self.stages:
                    assert name not in stage.open or name in stage.unacknowledged

    @invariant()
    def what_is_over_is_ended_everywhere(self):
        """I9: no stage that listens holds a request which the orchestrator has let go."""
        for stage in self.stages:
            assert stage.open - stage.unacknowledged <= set(self.orchestrator.live_requests)

    @invariant()
    def each_stage_is_submitted_at_most_once(self):
        for stage in self.stages:
            assert max(Counter(name for name, _ in stage.submits).values(), default=0) <= 1

    @invariant()
    def the_client_sees_final_stages_in_their_order(self):
        for life in self.lives.values():
            for stage_id in range(3):
                data = [o.data for o in life.seen if o.stage_id == stage_id and o.data is not None]
                assert not data or stage_id in FINAL
                assert data == life.for_client[stage_id][: len(data)]

    @invariant()
    def an_output_has_its_stages_role_and_says_whether_it_is_the_end(self):
        for life in self.lives.values():
            for output in life.seen:
                assert output.role == ROLES[output.stage_id]
                assert output.is_end == (output.data in life.ends)

    @invariant()
    def credit_is_returned_at_most_once_for_each_output(self):
        for stage in self.stages:
            for name, credit in stage.credits.items():
                assert credit <= len(self.lives[name].reported[stage.stage_id])

    @invariant()
    def an_error_is_one_that_happened(self):
        for name, life in self.lives.items():
            error = life.seen[-1].error if life.seen else None
            if isinstance(error, DeadlineError):
                assert self.now >= life.added_at + DEADLINE_S, name
            elif error is not None:
                assert error in life.causes or type(error) in life.causes, name

    def teardown(self):
        self.runner.run(self._end())
        self.runner.close()

    async def _end(self):
        await asyncio.sleep(DEADLINE_S + 3)  # I7: whatever stages did, all is over by now
        assert self.orchestrator.live_requests == set()
        for name in list(self.readers):
            while not (self.lives[name].seen and self.lives[name].seen[-1].finished):
                await self._read(name)
        for name, life in self.lives.items():
            if life.reading:
                assert life.seen, name
                assert life.seen[-1].finished, name
        for scope, _ in self.readers.values():
            await scope.__aexit__(None, None, None)
        await settle()
        assert len(asyncio.all_tasks()) == self.base_tasks + 1
        self.collector.cancel()
        await self.orchestrator.shutdown()


class SequentialMachine(Machine):
    form = Orchestrator
    not_begun = UnavailableError

    @invariant()
    def a_stage_gets_all_that_was_addressed_to_it_and_nothing_else(self):
        for stage in self.stages[1:]:
            for name, (stage_id, data) in stage.submits:
                assert stage_id == stage.stage_id
                assert data == self.lives[name].for_next[stage_id - 1]


for machine in (Machine, SequentialMachine):
    machine.TestCase.settings = settings(
        max_examples=EXAMPLES,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

TestAsyncChunk = Machine.TestCase
TestSequential = SequentialMachine.TestCase
