"""The worker, turn by turn, in the test's own thread: no executor and no waiting."""

import contextlib

import pytest

from stages.contract.errors import RequestError
from stages.contract.messages import (
    ChatPrompt,
    Message,
    Sampling,
    StageInput,
    TextChunk,
    ThinkerParams,
    To,
)
from stages.contract.stage import Credit, Emit
from stages.runtime.connectors.contract import LaneSignal
from stages.runtime.connectors.memory import MemoryConnector
from stages.runtime.connectors.wakeup import ThreadWakeup
from stages.runtime.cores import CORES
from stages.runtime.worker.control import Abort, AbortDone, AddCredit, Stop, Submit
from stages.runtime.worker.edges import Position, WorkerEdges
from stages.runtime.worker.step_stats import StepReport
from stages.runtime.worker.worker import UNLIMITED, Worker
from tests.stages.addressed import SplitThinker


class EchoStage:
    """Emits each chunk that it is fed, and an end; fails where the text says so."""

    def __init__(self):
        self.fed = {}
        self.ended = set()
        self.closed = []
        self.batches = []
        self.num_workers = []

    def open(self, request_id, params):
        if params == "bad":
            raise ValueError("bad params")
        self.fed[request_id] = []

    def feed(self, request_id, chunk):
        self.fed[request_id].append(chunk)

    def end_input(self, request_id):
        self.ended.add(request_id)

    def wants_chunk(self, request_id):
        return len(self.fed[request_id]) < 2

    def ready(self, request_id, credit):
        return credit.both > 0 and (bool(self.fed[request_id]) or request_id in self.ended)

    def step(self, credit):
        self.batches.append(dict(credit))
        self.num_workers.append(CORES.num_workers)
        for request_id in credit:
            if not self.fed[request_id]:
                yield Emit(request_id, end="end")
                continue
            chunk = self.fed[request_id].pop(0)
            if chunk.text == "poison":
                raise RequestError(request_id, "poisoned")
            if chunk.text == "bomb":
                raise MemoryError
            yield Emit(request_id, chunk)

    def close(self, request_id):
        del self.fed[request_id]
        self.closed.append(request_id)


class NotedWakeup:
    """Wakes the neighbours; notes what was reported each time that it does."""

    def __init__(self, reports):
        self._reports = reports
        self.woken_after = []

    def wake(self):
        self.woken_after.append(list(self._reports))


class Harness:
    """A worker whose mailbox ends it once there is nothing left to do."""

    def __init__(self, stage=None, *, final=True, incoming=False, outgoing=False, max_unread=8):
        self.orders = []
        self.reports = []
        self.stage = stage or EchoStage()
        names = ("before", "also before") if incoming else ()
        before = [MemoryConnector(name, 4) for name in names]
        after = [MemoryConnector("after", 2)] if outgoing else []
        position = Position(final, max_unread, tuple(before), tuple(after))
        self.neighbours = NotedWakeup(self.reports)
        edges = WorkerEdges(ThreadWakeup())
        edges.open([position])
        self.senders = {each.name: each.open_sender(self.neighbours) for each in before}
        self.before = self.senders.get("before")
        self.after = after[0].open_receiver(self.neighbours) if outgoing else None
        self.edge = after[0] if outgoing else None
        self.worker = Worker(self.stage, [position], edges, self, self.reports.extend)

    def sent(self):
        """What came over the edge after this worker, without its start."""
        items = [delivery.item for delivery in self.after.receive()]
        return [item for item in items if item is not LaneSignal.RESET]

    def take(self, *, block):
        orders, self.orders = self.orders, []
        if block and not orders:
            raise StopIteration  # nothing to do: the turn is over
        return orders

    def turn(self, *orders):
        self.orders.extend(orders)
        self.reports.clear()
        with contextlib.suppress(StopIteration):
            self.worker.run()
        return [
            (r.output.request_id, r.output.data, r.output.finished)
            if not isinstance(r, AbortDone)
            else ("aborted", r.request_id)
            for r in self.reports
            if not isinstance(r, StepReport)
        ]


def submit(request_id, *texts, params=None, has_next=False, over_edge=None):
    source = tuple(map(TextChunk, texts)) if over_edge is None else None
    incoming, outgoing = over_edge, "after" if has_next else None
    return Submit(0, request_id, StageInput(params, source, has_next), incoming, outgoing)


def test_a_request_reports_its_chunks_in_order_and_then_its_end():
    harness = Harness()
    assert harness.turn(submit("a", "x", "y", "z")) == [
        ("a", TextChunk("x"), False),
        ("a", TextChunk("y"), False),
        ("a", TextChunk("z"), False),
        ("a", "end", True),
    ]
    assert harness.stage.closed == ["a"]


def test_each_step_advances_every_runnable_request():
    harness = Harness()
    harness.turn(submit("a", "x"), submit("b", "y"))
    assert [set(batch) for batch in harness.stage.batches] == [{"a", "b"}, {"a", "b"}]


def test_a_request_without_credit_waits_and_the_others_go_on():
    harness = Harness(max_unread=2)
    first = harness.turn(submit("a", *"abcd"), submit("b", "x"))
    assert [r[1] for r in first if r[0] == "a"] == [TextChunk("a"), TextChunk("b")]
    assert ("b", "end", True) in first
    assert harness.turn() == []
    second = harness.turn(AddCredit({"a": 1}))
    assert second == [("a", TextChunk("c"), False)]
    assert harness.turn(AddCredit({"a": 1})) == [("a", TextChunk("d"), False)]
    assert harness.turn(AddCredit({"a": 1})) == [("a", "end", True)]


def test_an_edge_without_credit_holds_its_request_back_and_the_end_waits_to_be_consumed():
    harness = Harness(final=False, outgoing=True)
    edge = harness.after
    assert harness.turn(submit("a", *"abc", has_next=True)) == []
    assert harness.sent() == [TextChunk("a"), TextChunk("b")]
    edge.consumed("a")
    edge.consumed("a")
    assert harness.turn(AddCredit({"a": 0})) == []
    assert harness.sent() == [TextChunk("c"), LaneSignal.END]
    edge.consumed("a")
    assert harness.turn(AddCredit({"a": 0})) == []
    edge.consumed("a")
    assert harness.turn(AddCredit({"a": 0})) == [("a", "end", True)]
    assert harness.edge.stats().num_lanes == 0


def test_chunks_that_come_before_the_submit_wait_for_it():
    harness = Harness(incoming=True)
    sender = harness.before
    sender.open_lane("a")
    sender.send("a", TextChunk("early"))
    sender.finish("a")
    assert harness.turn(AddCredit({"nobody": 1})) == []
    assert not sender.is_drained("a")
    assert harness.turn(submit("a", over_edge="before")) == [
        ("a", TextChunk("early"), False),
        ("a", "end", True),
    ]
    assert sender.is_drained("a")


def test_a_chunk_is_reported_before_the_stage_ahead_is_woken_to_make_the_next():
    harness = Harness(incoming=True)
    harness.turn(submit("a", over_edge="before"))
    harness.before.open_lane("a")
    harness.before.send("a", TextChunk("x"))
    assert harness.turn(AddCredit({"nobody": 1})) == [("a", TextChunk("x"), False)]
    assert harness.neighbours.woken_after == [harness.reports]


def test_an_abort_in_place_of_the_submit_frees_what_came_early():
    harness = Harness(incoming=True)
    sender = harness.before
    sender.open_lane("a")
    sender.send("a", TextChunk("early"))
    harness.turn(AddCredit({"nobody": 1}))
    assert harness.turn(Abort(0, "a", "before")) == [("aborted", "a")]
    assert sender.is_drained("a")
    assert (
        harness.turn(submit("a", over_edge="before")) == []
    )  # it finds nothing of the early chunk


def test_a_reset_drops_what_came_early_over_its_edge_and_over_no_other():
    harness = Harness(incoming=True)
    for request_id, sender in zip("ab", harness.senders.values(), strict=True):
        sender.open_lane(request_id)
        sender.send(request_id, TextChunk("early"))
    harness.turn(AddCredit({"nobody": 1}))
    harness.before.reset()
    harness.turn(AddCredit({"nobody": 1}))
    assert harness.turn(submit("a", over_edge="before"), submit("b", over_edge="also before")) == [
        ("b", TextChunk("early"), False)
    ]


def test_input_that_waits_is_dropped_when_the_stage_before_gives_up():
    harness = Harness(incoming=True, max_unread=1)
    harness.turn(submit("a", over_edge="before"))
    harness.before.open_lane("a")
    for text in "wxyz":
        harness.before.send("a", TextChunk(text))
    assert harness.turn(AddCredit({"nobody": 1})) == [("a", TextChunk("w"), False)]
    harness.before.close_lane("a")
    harness.turn(AddCredit({"nobody": 1}))
    fed = [("a", TextChunk(text), False) for text in "xy"]  # the stage takes two at a time
    assert harness.turn(AddCredit({"a": 9})) == fed
    assert harness.turn(Abort(0, "a", "before")) == [("aborted", "a")]


def test_an_abort_closes_the_request_once_and_is_acknowledged_also_when_repeated():
    harness = Harness(max_unread=1)
    harness.turn(submit("a", "x", "y"))
    assert harness.turn(Abort(0, "a")) == [("aborted", "a")]
    assert harness.turn(Abort(0, "a")) == [("aborted", "a")]
    assert harness.stage.closed == ["a"]


def test_a_failing_request_fails_alone():
    harness = Harness()
    reports = harness.turn(submit("a", "x", "poison"), submit("b", "y", "z"))
    assert ("a", None, True) in reports
    assert [r for r in reports if r[0] == "b"] == [
        ("b", TextChunk("y"), False),
        ("b", TextChunk("z"), False),
        ("b", "end", True),
    ]
    assert sorted(harness.stage.closed) == ["a", "b"]


def test_a_request_that_cannot_be_opened_fails_with_the_reason():
    harness = Harness()
    harness.turn(submit("a", params="bad"))
    error = harness.reports[0].output.error
    assert isinstance(error, RequestError)
    assert "bad params" in str(error)
    assert harness.stage.closed == []


def test_a_request_that_cannot_be_opened_takes_no_input():
    harness = Harness(incoming=True)
    harness.before.open_lane("a")
    harness.before.send("a", TextChunk("early"))
    harness.turn(submit("a", params="bad", over_edge="before"))
    assert harness.before.is_drained("a")


def test_an_exception_that_is_no_request_error_ends_the_worker():
    harness = Harness()
    with pytest.raises(MemoryError):
        harness.turn(submit("a", "bomb"))


def test_stop_closes_what_is_open():
    harness = Harness(max_unread=1)
    harness.turn(submit("a", "x", "y"), Stop())
    assert harness.stage.closed == ["a"]


def test_a_worker_counts_as_busy_until_its_last_request_is_closed():
    harness = Harness()
    harness.turn(submit("a", "x"), submit("b", "x", "y"))
    assert harness.stage.num_workers == [1, 1, 1]
    assert CORES.num_workers == 0


def test_a_worker_that_died_no_longer_counts_as_busy():
    harness = Harness()
    with pytest.raises(MemoryError):
        harness.turn(submit("a", "bomb"))
    assert harness.stage.num_workers == [1]
    assert CORES.num_workers == 0


class Addressing(EchoStage):
    """Emits each chunk to the address that is its text."""

    def step(self, credit):
        for emit in super().step(credit):
            to = To.BOTH if emit.chunk is None else To[emit.chunk.text]
            yield Emit(emit.request_id, emit.chunk, emit.end, to)


ADDRESSES = ("CLIENT", "NEXT", "BOTH")


def reported(harness):
    """The addresses of the chunks that were reported."""
    outputs = [r.output for r in harness.reports if not isinstance(r, StepReport)]
    assert all(output.to is To[output.data.text] for output in outputs if not output.finished)
    return [output.data.text for output in outputs if not output.finished]


@pytest.mark.parametrize(
    ("final", "to_client"), [(True, ["CLIENT", "BOTH"]), (False, [])], ids=["final", "not final"]
)
def test_a_chunk_goes_where_it_is_addressed_to(final, to_client):
    harness = Harness(Addressing(), final=final, outgoing=True)
    harness.turn(submit("a", *ADDRESSES, has_next=True))
    assert harness.sent() == [TextChunk("NEXT"), TextChunk("BOTH")]
    assert reported(harness) == to_client


@pytest.mark.parametrize("final", [True, False])
def test_without_an_edge_every_chunk_is_reported_with_its_address(final):
    harness = Harness(Addressing(), final=final)
    harness.turn(submit("a", *ADDRESSES))
    assert reported(harness) == [*ADDRESSES]


@pytest.mark.parametrize(
    ("options", "credit"),
    [
        ({"outgoing": True}, Credit(client=3, next=2)),
        ({"outgoing": True, "final": False}, Credit(client=UNLIMITED, next=2)),
        ({}, Credit(client=3, next=3)),
        ({"final": False}, Credit(client=3, next=3)),
    ],
    ids=["final", "not final", "no edge", "not final, no edge"],
)
def test_credit_for_the_client_and_for_the_next_stage_is_counted_apart(options, credit):
    harness = Harness(max_unread=3, **options)
    harness.turn(submit("a", "x", has_next="outgoing" in options))
    assert harness.stage.batches[0] == {"a": credit}


def split(text):
    return ThinkerParams(ChatPrompt((Message("user", text),)), Sampling(seed=1), max_tokens=99)


def test_a_stage_may_go_on_for_one_side_while_the_other_has_no_credit():
    harness = Harness(SplitThinker(), outgoing=True, max_unread=1)
    first = harness.turn(submit("a", params=split("x"), has_next=True))
    assert [data.text for _, data, _ in first] == ["You"]
    assert [chunk.text for chunk in harness.sent()] == ["YOU", " SAID:"]
    assert harness.turn() == []  # it waits for both, and nothing spins
    harness.after.consumed("a")
    assert harness.turn(AddCredit({"nobody": 1})) == []
    assert [chunk.text for chunk in harness.sent()] == [" X"]
    assert [data.text for _, data, _ in harness.turn(AddCredit({"a": 1}))] == [" said:"]
    assert [data.text for _, data, _ in harness.turn(AddCredit({"a": 1}))] == [" x"]
    assert harness.sent() == [LaneSignal.END]  # the end needs no credit


class OneAtATime(EchoStage):
    """Holds one request until its end, and lets the others wait."""

    def __init__(self):
        super().__init__()
        self.holder = None

    def ready(self, request_id, credit):
        return self.holder in (None, request_id) and super().ready(request_id, credit)

    def step(self, credit):
        self.holder = min(credit)
        for emit in super().step({self.holder: credit[self.holder]}):
            if emit.end is not None:
                self.holder = None
            yield emit

    def close(self, request_id):
        super().close(request_id)
        if self.holder == request_id:
            self.holder = None


@pytest.mark.parametrize("aborted", [False, True])
def test_requests_that_wait_for_another_are_asked_again_when_it_ends_or_is_aborted(aborted):
    harness = Harness(OneAtATime(), max_unread=1)
    harness.turn(submit("a", "x", "y"))
    harness.turn(submit("b", "z"))
    assert harness.turn() == []  # "a" is held and has no credit, "b" waits, and nothing spins
    if aborted:
        assert ("b", TextChunk("z"), False) in harness.turn(Abort(0, "a"))
    else:
        harness.turn(AddCredit({"a": 1}))
        assert ("b", TextChunk("z"), False) in harness.turn(AddCredit({"a": 1}))


def test_requests_that_wait_for_another_need_not_wait_until_its_chunks_are_consumed():
    harness = Harness(OneAtATime(), final=False, outgoing=True)
    harness.turn(submit("a", "x", has_next=True), submit("b", "y", has_next=True))
    assert harness.stage.closed == []
    assert harness.sent() == [TextChunk("x"), LaneSignal.END, TextChunk("y"), LaneSignal.END]


def test_chunks_of_a_last_stage_that_is_not_final_are_reported_for_the_next_one():
    harness = Harness(final=False)
    assert harness.turn(submit("a", "x")) == [("a", TextChunk("x"), False), ("a", "end", True)]


def test_the_steps_of_a_request_are_reported_before_its_end_and_once():
    harness = Harness()
    harness.turn(submit("a", "x", "y"), submit("b", "z"))
    step_reports = [report for report in harness.reports if isinstance(report, StepReport)]
    ends = [
        k
        for k, r in enumerate(harness.reports)
        if not isinstance(r, StepReport) and r.output.finished
    ]
    first_steps = next(k for k, r in enumerate(harness.reports) if isinstance(r, StepReport))
    assert first_steps < min(ends)
    steps = [step for report in step_reports for step in report.steps]
    for name, num in (("a", 2), ("b", 1)):
        assert sum(step.num_chunks.get((0, name), 0) for step in steps) == num
    assert sum(step.num_requests for step in steps) == 3 + 2  # chunks and ends
