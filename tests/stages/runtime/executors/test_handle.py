"""What a handle sends to its workers."""

import anyio.lowlevel

from stages.contract.errors import WorkerDiedError
from stages.contract.messages import StageInput, StageOutput
from stages.runtime.executors.handle import ReplicatedHandle
from stages.runtime.worker.control import AddCredit, Output, Submit


class WorkerInbox:
    """A worker's executor, without the worker."""

    def __init__(self, name):
        self.num_live = 0
        self.name = name
        self.received = []

    def post(self, order):
        if not isinstance(order, Submit):
            self.received.append(order)


def add_replicas(handle, *workers):
    """A replica for each of the workers, which run."""
    replicas = [handle.add_replica(worker, 0) for worker in workers]
    for replica in replicas:
        replica.worker_started()
    return replicas


async def submit(handle, *request_ids):
    for request_id in request_ids:
        await handle.submit(request_id, StageInput(None, (), has_next=False))


async def test_credit_is_sent_once_per_turn_of_the_loop():
    handle, worker = ReplicatedHandle(), WorkerInbox("only")
    add_replicas(handle, worker)
    await submit(handle, "a", "b")
    handle.credit("a", 1)
    handle.credit("b", 1)
    handle.credit("a", 1)
    assert worker.received == []
    await anyio.lowlevel.checkpoint()
    handle.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert worker.received == [AddCredit({"a": 2, "b": 1}), AddCredit({"a": 1})]


async def test_credit_goes_to_the_replica_that_has_the_request():
    handle, workers = ReplicatedHandle(), [WorkerInbox("one"), WorkerInbox("other")]
    add_replicas(handle, *workers)
    await submit(handle, "a", "b")
    for request_id in ("a", "b", "nobody"):
        handle.credit(request_id, 1)
    await anyio.lowlevel.checkpoint()
    assert [worker.received for worker in workers] == [[AddCredit({"a": 1})], [AddCredit({"b": 1})]]


async def test_a_worker_that_died_gets_no_credit_and_the_next_one_only_new_credit():
    handle, worker = ReplicatedHandle(), WorkerInbox("mortal")
    (replica,) = add_replicas(handle, worker)
    await submit(handle, "a")
    handle.credit("a", 1)
    replica.worker_ended(WorkerDiedError("gone"))
    await anyio.lowlevel.checkpoint()
    replica.worker_started()
    await submit(handle, "b")
    handle.credit("b", 1)
    await anyio.lowlevel.checkpoint()
    assert worker.received == [AddCredit({"b": 1})]


async def test_work_is_known_from_the_submit_until_the_worker_is_gone():
    handle, workers = ReplicatedHandle(), [WorkerInbox("one"), WorkerInbox("other")]
    one, other = add_replicas(handle, *workers)
    await submit(handle, "a", "b")
    assert handle.work_of("a") is one.work["a"]
    assert handle.work_of("b") is other.work["b"]
    one.worker_ended(WorkerDiedError("gone"))
    assert handle.work_of("a") is None
    assert (one.work, list(other.work)) == ({}, ["b"])


async def test_credit_is_sent_at_a_quarter_of_what_may_be_unread():
    handle, worker = ReplicatedHandle(), WorkerInbox("only")
    handle.add_replica(worker, 0, max_unread=8).worker_started()
    await submit(handle, "a", "b")
    handle.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert worker.received == []
    handle.credit("b", 1)
    handle.credit("a", 1)
    await anyio.lowlevel.checkpoint()
    assert worker.received == [AddCredit({"a": 2, "b": 1})]


async def test_credit_of_a_request_that_is_over_is_not_sent():
    handle, worker = ReplicatedHandle(), WorkerInbox("only")
    replica = handle.add_replica(worker, 0, max_unread=8)
    replica.worker_started()
    await submit(handle, "a", "b")
    handle.credit("a", 1)
    replica.deliver(Output(0, StageOutput("a", None, finished=True)))
    handle.credit("b", 2)
    await anyio.lowlevel.checkpoint()
    assert worker.received == [AddCredit({"b": 2})]
