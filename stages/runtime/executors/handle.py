"""A face: one pipeline position of a stage, as the orchestrator holds it, over all its replicas.

A face has a seat at each worker of its stage. A request is bound to one of them for its life: to
the worker with the fewest live requests, when the stage before is submitted (which must know where
to send its chunks), or when this one is. A worker that dies fails what was bound to it; the face is
down only while all of its workers are. Belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from stages.contract.channel import Channel
from stages.contract.errors import UnavailableError, WorkerDiedError
from stages.contract.messages import Request, StageInput, StageOutput
from stages.contract.work import StageWork
from stages.runtime.worker.control import Abort, AbortDone, Credit, Output, Submit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.runtime.worker.control import Order, PositionReport


class WorkerInbox(Protocol):
    """What a seat needs of its worker's executor."""

    name: str
    num_live: int  # requests that are bound to the worker; its seats count

    def post(self, order: Order) -> None:
        """Put an order into the worker's inbox. Never waits."""


class Replica:
    """One pipeline position of one worker, and the requests that are bound to it.

    `inlets` and `outlets` are the names of its edges, by the replica at their other end.
    """

    def __init__(
        self,
        face: ReplicatedHandle,
        number: int,
        host: WorkerInbox,
        index: int,
        inlets: Sequence[str],
        outlets: Sequence[str],
        max_unread: int,
    ) -> None:
        self._face = face
        self.number = number  # among the seats of its face
        self.host = host
        self.index = index  # among the seats of its worker
        self._inlets = inlets
        self._outlets = outlets
        self._tell_at = max(1, max_unread // 4)
        self.is_up = False
        self.cut: set[int] = set()  # the replicas of the stage before that cannot reach it now
        self.requests: dict[str, int | None] = {}  # each with the replica of the stage before
        self.work: dict[str, StageWork] = {}  # of those that were submitted
        self.aborts: dict[str, asyncio.Future[None]] = {}  # not acknowledged yet
        self._credit: Counter[str] = Counter()  # not told yet
        self._is_telling = False

    def submit(self, request_id: str, stage_input: StageInput, following: int | None) -> None:
        """Put a request that is bound to the worker into its inbox, and say where it goes next."""
        self.work[request_id] = StageWork()
        outlet = None if following is None else self._outlets[following]
        inlet = self._inlet_of(request_id)
        self.host.post(Submit(self.index, request_id, stage_input, inlet, outlet))

    def abort(self, request_id: str) -> None:
        """Tell the worker to stop a request."""
        self.host.post(Abort(self.index, request_id, self._inlet_of(request_id)))

    def credit(self, request_id: str, chunks: int) -> None:
        """The client consumed `chunks` more. To tell it wakes the worker, which then wants the
        interpreter: it is told at a quarter of what may be unread, and once a turn of the loop.
        """
        self._credit[request_id] += chunks
        if self._credit[request_id] >= self._tell_at and not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self._tell_credit)

    def worked(self, request_id: str, began_at: float, ended_at: float, num_chunks: int) -> None:
        """The worker told of a step, as the request saw it."""
        if (work := self.work.get(request_id)) is not None:
            work.add(began_at, ended_at, num_chunks)

    def deliver(self, report: PositionReport) -> None:
        """Take one report of the worker."""
        match report:
            case Output(_, output):
                if output.finished:
                    self._release(output.request_id)
                self._face.deliver(output)
            case AbortDone(_, request_id):
                self._release(request_id)
                self.aborts.pop(request_id).set_result(None)

    def worker_started(self) -> None:
        """The worker is ready."""
        self.is_up = True
        self._face.seat_is_up()

    def worker_ended(self, cause: WorkerDiedError) -> None:
        """The worker is gone, and with it everything that it held."""
        self.is_up = False
        failed = list(self.requests)
        for request_id in failed:
            self._release(request_id)
        for done in self.aborts.values():
            done.set_result(None)
        self.aborts.clear()
        self._face.seat_is_down(failed, cause)

    def _inlet_of(self, request_id: str) -> str | None:
        before = self.requests[request_id]
        return None if before is None else self._inlets[before]

    def _tell_credit(self) -> None:
        self._is_telling = False
        if self.is_up and self._credit:
            self.host.post(Credit(dict(self._credit)))
        self._credit.clear()

    def bind(self, request_id: str, before: int | None) -> None:
        """The worker has one request more; its chunks come from the replica `before`."""
        self.requests[request_id] = before
        self.host.num_live += 1

    def _release(self, request_id: str) -> None:
        if request_id in self.requests:
            del self.requests[request_id]
            self.host.num_live -= 1
        self.work.pop(request_id, None)
        self._credit.pop(request_id, None)
        self._face.release(request_id)


class ReplicatedHandle:
    """A `WorkerHandle` over all replicas of a stage. `following` is the next stage's."""

    def __init__(self, following: ReplicatedHandle | None = None) -> None:
        self._seats: list[Replica] = []  # the one that was chosen longest ago first
        self._following = following
        self._bound: dict[str, Replica] = {}
        self._outputs: Channel[StageOutput] = Channel()
        self._down: Exception | None = UnavailableError("the worker was not started")
        self._up = asyncio.Event()

    def seat(
        self,
        host: WorkerInbox,
        index: int,
        inlets: Sequence[str] = (),
        outlets: Sequence[str] = (),
        max_unread: int = 1,
    ) -> Replica:
        """A seat at one more worker, of which it is seat `index`, with the names of its edges."""
        seat = Replica(self, len(self._seats), host, index, inlets, outlets, max_unread)
        self._seats.append(seat)
        return seat

    @property
    def unacknowledged(self) -> list[str]:
        """The names of the workers that have not acknowledged an abort yet."""
        return [seat.host.name for seat in self._seats if seat.aborts]

    async def submit(self, request_id: str, stage_input: StageInput | Request) -> None:
        """Put the request into the inbox of its worker. UnavailableError if there is none."""
        if isinstance(stage_input, Request):
            stage_input = stage_input.stage_input(0)
        if stage_input.source is None:  # bound with the stage before, whose chunks it takes
            seat = self._bound.get(request_id)
            if seat is None:
                raise UnavailableError("the worker of this request is gone")
        else:
            seat = self._bind(request_id, None)
        following = None
        if stage_input.has_next and self._following is not None:
            following = self._following._bind(request_id, seat.number).number
        seat.submit(request_id, stage_input, following)

    async def next_output(self) -> StageOutput:
        """The next report; WorkerDiedError once all workers are gone and all was read."""
        return await self._outputs.get()

    async def abort(self, request_id: str) -> None:
        """Stop the request; returns when its worker holds nothing of it, or is gone."""
        seat = self._bound.get(request_id)
        if seat is None:
            return
        done = seat.aborts.get(request_id)
        if done is None:
            done = seat.aborts[request_id] = asyncio.get_running_loop().create_future()
            seat.abort(request_id)
        await asyncio.shield(done)

    def credit(self, request_id: str, chunks: int) -> None:
        """The client consumed `chunks` more."""
        if (seat := self._bound.get(request_id)) is not None:
            seat.credit(request_id, chunks)

    def work_of(self, request_id: str) -> StageWork | None:
        """What the stage does for an open request; it grows until the request is over."""
        seat = self._bound.get(request_id)
        return None if seat is None else seat.work.get(request_id)

    async def wait_until_up(self) -> None:
        """Returns when a worker runs (again)."""
        await self._up.wait()

    # What its seats tell it.

    def deliver(self, output: StageOutput) -> None:
        """A worker's report."""
        self._outputs.put(output)

    def release(self, request_id: str) -> None:
        """A request is no longer bound."""
        self._bound.pop(request_id, None)

    def seat_is_up(self) -> None:
        """A worker is ready. After a time without any, earlier reports are no longer to be had."""
        if self._down is not None:
            self._down = None
            self._outputs = Channel()
            self._up.set()

    def seat_is_down(self, failed: Sequence[str], cause: WorkerDiedError) -> None:
        """A worker is gone. While others run, only the requests that it held hear of it."""
        for request_id in failed:
            self._outputs.put(StageOutput(request_id, None, finished=True, error=cause))
        if not any(seat.is_up for seat in self._seats):
            self._down = cause
            self._up.clear()
            self._outputs.close(cause)

    def _bind(self, request_id: str, before: int | None) -> Replica:
        """The worker with the fewest live requests; among equals, the one not chosen longest."""
        chosen = None
        for seat in self._seats:  # short of a call for each: it is done for every request
            if not seat.is_up or before in seat.cut:
                continue
            if chosen is None or seat.host.num_live < chosen.host.num_live:
                chosen = seat
        if chosen is None:
            raise UnavailableError(str(self._down or "no worker of the next stage is in reach"))
        self._seats.remove(chosen)
        self._seats.append(chosen)
        self._bound[request_id] = chosen
        chosen.bind(request_id, before)
        return chosen
