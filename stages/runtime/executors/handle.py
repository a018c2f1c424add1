"""The orchestrator's handle of one pipeline position of a stage, over all workers of that stage.

A request runs on one of these workers for its life: the worker with the fewest live requests. It is
bound when the stage before is submitted, which must know where to send its chunks, or else when
this stage is. If a worker dies, only the requests bound to it fail. The handle is down only while
all workers are. Belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from stages.contract.channel import Channel
from stages.contract.errors import UnavailableError, WorkerDiedError
from stages.contract.messages import Request, StageInput, StageOutput
from stages.contract.work import StageWork
from stages.runtime.worker.control import Abort, AbortDone, AddCredit, Output, Submit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.runtime.worker.control import Order, PositionReport


class WorkerInbox(Protocol):
    """What a replica needs of its worker's executor."""

    name: str
    num_live: int  # requests that are bound to the worker, at all its positions

    def post(self, order: Order) -> None:
        """Put an order into the worker's inbox. Never waits."""


class Replica:
    """One worker of a stage as one handle sees it, and the handle's requests that are bound to it.

    `number` is its number among the replicas of the handle, `position` the index of the handle's
    position at the worker. `incoming` and `outgoing` are the names of the worker's edges, by the
    number of the replica at their other end.
    """

    def __init__(
        self,
        handle: ReplicatedHandle,
        number: int,
        worker: WorkerInbox,
        position: int,
        incoming: Sequence[str],
        outgoing: Sequence[str],
        max_unread: int,
    ) -> None:
        self._handle = handle
        self.number = number
        self.worker = worker
        self.position = position
        self._incoming = incoming
        self._outgoing = outgoing
        self._send_credit_at = max(1, max_unread // 4)
        self.is_up = False
        self.unreachable_from: set[int] = set()  # replicas of the stage before
        self.requests: dict[str, int | None] = {}  # each with its replica of the stage before
        self.work: dict[str, StageWork] = {}  # of the requests that were submitted
        self.aborts: dict[str, asyncio.Future[None]] = {}  # not acknowledged yet
        self._credit: Counter[str] = Counter()  # not sent yet
        self._is_credit_due = False

    def submit(self, request_id: str, stage_input: StageInput, next_replica: int | None) -> None:
        """Submit a request that is bound to the worker, and say where its chunks go next."""
        self.work[request_id] = StageWork()
        outgoing = None if next_replica is None else self._outgoing[next_replica]
        incoming = self._incoming_of(request_id)
        self.worker.post(Submit(self.position, request_id, stage_input, incoming, outgoing))

    def abort(self, request_id: str) -> None:
        """Tell the worker to stop a request."""
        self.worker.post(Abort(self.position, request_id, self._incoming_of(request_id)))

    def credit(self, request_id: str, chunks: int) -> None:
        """The client consumed `chunks` more.

        Sending credit wakes the worker, which then competes for the interpreter. So it is sent once
        a request has a quarter of what may be unread, and once per turn of the event loop.
        """
        self._credit[request_id] += chunks
        if self._credit[request_id] >= self._send_credit_at and not self._is_credit_due:
            self._is_credit_due = True
            asyncio.get_running_loop().call_soon(self._send_credit)

    def add_work(self, request_id: str, began_at: float, ended_at: float, num_chunks: int) -> None:
        """The worker reported a step that advanced the request."""
        if (work := self.work.get(request_id)) is not None:
            work.add(began_at, ended_at, num_chunks)

    def deliver(self, report: PositionReport) -> None:
        """Take one report of the worker."""
        match report:
            case Output(_, output):
                if output.finished:
                    self._release(output.request_id)
                self._handle.deliver(output)
            case AbortDone(_, request_id):
                self._release(request_id)
                self.aborts.pop(request_id).set_result(None)

    def worker_started(self) -> None:
        """The worker is ready."""
        self.is_up = True
        self._handle.replica_is_up()

    def worker_ended(self, cause: WorkerDiedError) -> None:
        """The worker is gone, and everything that it held."""
        self.is_up = False
        failed = list(self.requests)
        for request_id in failed:
            self._release(request_id)
        for done in self.aborts.values():
            done.set_result(None)
        self.aborts.clear()
        self._handle.replica_is_down(failed, cause)

    def bind(self, request_id: str, previous_replica: int | None) -> None:
        """Give the worker one more request, whose chunks come from `previous_replica`."""
        self.requests[request_id] = previous_replica
        self.worker.num_live += 1

    def _incoming_of(self, request_id: str) -> str | None:
        previous_replica = self.requests[request_id]
        return None if previous_replica is None else self._incoming[previous_replica]

    def _send_credit(self) -> None:
        self._is_credit_due = False
        if self.is_up and self._credit:
            self.worker.post(AddCredit(dict(self._credit)))
        self._credit.clear()

    def _release(self, request_id: str) -> None:
        if request_id in self.requests:
            del self.requests[request_id]
            self.worker.num_live -= 1
        self.work.pop(request_id, None)
        self._credit.pop(request_id, None)
        self._handle.release(request_id)


class ReplicatedHandle:
    """A `WorkerHandle` over all workers of a stage. `next_handle` is the next stage's."""

    def __init__(self, next_handle: ReplicatedHandle | None = None) -> None:
        self._replicas: list[Replica] = []  # the least recently used first
        self._next_handle = next_handle
        self._bound: dict[str, Replica] = {}
        self._outputs: Channel[StageOutput] = Channel()
        self._down: Exception | None = UnavailableError("the worker was not started")
        self._up = asyncio.Event()

    def add_replica(
        self,
        worker: WorkerInbox,
        position: int,
        incoming: Sequence[str] = (),
        outgoing: Sequence[str] = (),
        max_unread: int = 1,
    ) -> Replica:
        """Add one more worker; the parameters are those of `Replica`."""
        number = len(self._replicas)
        replica = Replica(self, number, worker, position, incoming, outgoing, max_unread)
        self._replicas.append(replica)
        return replica

    @property
    def unacknowledged(self) -> list[str]:
        """The names of the workers that have not acknowledged an abort yet."""
        return [replica.worker.name for replica in self._replicas if replica.aborts]

    @property
    def num_bound(self) -> int:
        """How many requests are bound to its workers."""
        return len(self._bound)

    async def submit(self, request_id: str, stage_input: StageInput | Request) -> None:
        """Put the request into the inbox of its worker. UnavailableError if there is none."""
        if isinstance(stage_input, Request):
            stage_input = stage_input.stage_input(0)
        if stage_input.source is None:  # bound with the stage before, whose chunks it takes
            replica = self._bound.get(request_id)
            if replica is None:
                raise UnavailableError("the worker of this request is gone")
        else:
            replica = self._bind(request_id, None)
        next_replica = None
        if stage_input.has_next and self._next_handle is not None:
            next_replica = self._next_handle._bind(request_id, replica.number).number
        replica.submit(request_id, stage_input, next_replica)

    async def next_output(self) -> StageOutput:
        """The next report. WorkerDiedError once all workers are gone and all reports are read."""
        return await self._outputs.get()

    async def abort(self, request_id: str) -> None:
        """Stop the request. Returns when its worker holds nothing of it, or is gone."""
        replica = self._bound.get(request_id)
        if replica is None:
            return
        done = replica.aborts.get(request_id)
        if done is None:
            done = replica.aborts[request_id] = asyncio.get_running_loop().create_future()
            replica.abort(request_id)
        await asyncio.shield(done)

    def credit(self, request_id: str, chunks: int) -> None:
        """The client consumed `chunks` more."""
        if (replica := self._bound.get(request_id)) is not None:
            replica.credit(request_id, chunks)

    def work_of(self, request_id: str) -> StageWork | None:
        """What the stage does for an open request. It grows until the request is over."""
        replica = self._bound.get(request_id)
        return None if replica is None else replica.work.get(request_id)

    async def wait_until_up(self) -> None:
        """Returns when a worker runs."""
        await self._up.wait()

    # What its replicas call.

    def deliver(self, output: StageOutput) -> None:
        """A worker reported this."""
        self._outputs.put(output)

    def release(self, request_id: str) -> None:
        """A request is no longer bound."""
        self._bound.pop(request_id, None)

    def replica_is_up(self) -> None:
        """A worker is ready. If none was before, earlier reports can no longer be read."""
        if self._down is not None:
            self._down = None
            self._outputs = Channel()
            self._up.set()

    def replica_is_down(self, failed: Sequence[str], cause: WorkerDiedError) -> None:
        """A worker is gone. While others run, only the requests that it held fail."""
        for request_id in failed:
            self._outputs.put(StageOutput(request_id, None, finished=True, error=cause))
        if not any(replica.is_up for replica in self._replicas):
            self._down = cause
            self._up.clear()
            self._outputs.close(cause)

    def _bind(self, request_id: str, previous_replica: int | None) -> Replica:
        """Bind the request to the worker with the fewest live requests.

        Ties go to the least recently used worker.
        """
        chosen = None
        for replica in self._replicas:  # one loop without calls: it runs for every request
            if not replica.is_up or previous_replica in replica.unreachable_from:
                continue
            if chosen is None or replica.worker.num_live < chosen.worker.num_live:
                chosen = replica
        if chosen is None:
            raise UnavailableError(str(self._down or "no worker of the next stage can be reached"))
        self._replicas.remove(chosen)
        self._replicas.append(chosen)
        self._bound[request_id] = chosen
        chosen.bind(request_id, previous_replica)
        return chosen
