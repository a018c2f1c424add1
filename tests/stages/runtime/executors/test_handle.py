"""What a face tells its workers."""

import anyio.lowlevel

from stages.contract.errors import WorkerDiedError
from stages.contract.messages import StageInput, StageOutput
from stages.runtime.executors.handle import ReplicatedHandle
from stages.runtime.worker.control import Credit, Output, Submit


class WorkerInbox:
    """A worker's executor, without the worker."""

    def __init__(self, name):
        self.num_live = 0
        self.name = name
        self.told = []

    def post(self, order):
        if not isinstance(order, Submit):
            self.told.append(order)


def seats_of(face, *hosts):
    """A seat at each, whose workers run."""
    seats = [face.seat(host, 0) for host in hosts]
    for seat in seats:
        seat.worker_started()
    return seats


async def submit(face, *request_ids):
    for request_id in request_ids:
        await face.submit(request_id, StageInput(None, (), has_next=False))


async def test_credit_is_told_once_a_turn():
    face, host = ReplicatedHandle(), WorkerInbox("only")
    seats_of(face, host)
    await submit(face, "a", "b")
    face.credit("a", 1)
    face.credit("b", 1)
    face.credit("a", 1)
    assert host.told == []
    await anyio.lowlevel.checkpoint()
    face.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert host.told == [Credit({"a": 2, "b": 1}), Credit({"a": 1})]


async def test_credit_goes_to_the_replica_that_has_the_request():
    face, hosts = ReplicatedHandle(), [WorkerInbox("one"), WorkerInbox("other")]
    seats_of(face, *hosts)
    await submit(face, "a", "b")
    for request_id in ("a", "b", "nobody"):
        face.credit(request_id, 1)
    await anyio.lowlevel.checkpoint()
    assert [host.told for host in hosts] == [[Credit({"a": 1})], [Credit({"b": 1})]]


async def test_a_worker_that_died_is_told_nothing_and_the_next_one_only_what_is_new():
    face, host = ReplicatedHandle(), WorkerInbox("mortal")
    (seat,) = seats_of(face, host)
    await submit(face, "a")
    face.credit("a", 1)
    seat.worker_ended(WorkerDiedError("gone"))
    await anyio.lowlevel.checkpoint()
    seat.worker_started()
    await submit(face, "b")
    face.credit("b", 1)
    await anyio.lowlevel.checkpoint()
    assert host.told == [Credit({"b": 1})]


async def test_work_is_known_from_the_submit_until_the_worker_is_gone():
    face, hosts = ReplicatedHandle(), [WorkerInbox("one"), WorkerInbox("other")]
    one, other = seats_of(face, *hosts)
    await submit(face, "a", "b")
    assert face.work_of("a") is one.work["a"]
    assert face.work_of("b") is other.work["b"]
    one.worker_ended(WorkerDiedError("gone"))
    assert face.work_of("a") is None
    assert (one.work, list(other.work)) == ({}, ["b"])


async def test_credit_is_told_at_a_quarter_of_what_may_be_unread():
    face, host = ReplicatedHandle(), WorkerInbox("only")
    face.seat(host, 0, max_unread=8).worker_started()
    await submit(face, "a", "b")
    face.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert host.told == []
    face.credit("b", 1)
    face.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert host.told == [Credit({"a": 2, "b": 1})]


async def test_credit_of_a_request_that_is_over_is_not_told():
    face, host = ReplicatedHandle(), WorkerInbox("only")
    seat = face.seat(host, 0, max_unread=8)
    seat.worker_started()
    await submit(face, "a", "b")
    face.credit("a", 1)
    seat.deliver(Output(0, StageOutput("a", None, finished=True)))
    face.credit("b", 2)
    await anyio.lowlevel.checkpoint()
    assert host.told == [Credit({"b": 2})]
