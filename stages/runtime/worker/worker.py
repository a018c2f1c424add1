"""A stage worker: runs one stage for many requests, in whatever thread or process calls `run`.

Each turn:

1. collect what came over the edges;
2. carry out the orders;
3. update the requests that this changed;
4. let the stage advance every request that can run, and pass on what it made;
5. wake everyone who waits for that, once.

The worker never waits for a consumer: a request without credit is not runnable, and the others go
on. A request's chunks reach the next stage in order. Its final report comes after its last chunk
was consumed, and after the stage has closed it. The worker does not know what the stage computes.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.errors import RequestError, UnavailableError
from stages.contract.messages import StageOutput, To
from stages.contract.stage import Credit, as_request_error
from stages.runtime.connectors.contract import LaneSignal
from stages.runtime.cores import CORES
from stages.runtime.worker.control import Abort, AbortDone, AddCredit, Connect, Output, Stop, Submit
from stages.runtime.worker.step_stats import StepLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stages.contract.errors import OmniError
    from stages.contract.messages import Chunk, StageEnd
    from stages.contract.stage import Emit, Stage
    from stages.runtime.connectors.contract import Delivery, Receiver, Sender
    from stages.runtime.worker.control import Mailbox, Order, Report
    from stages.runtime.worker.edges import Position, WorkerEdges

UNLIMITED = sys.maxsize  # credit


@dataclass(slots=True)
class _OpenRequest:
    """A request that is open on the stage."""

    position: int
    incoming: str | None  # its incoming edge; None where the submit had the whole input
    receiver: Receiver | None  # of that edge
    sender: Sender | None  # None where the chunks use no edge: then all are reported
    client_sees: bool  # what it emits for the client
    credit: int  # how many chunks it may still report
    inputs: deque[Chunk | LaneSignal] = field(default_factory=deque)
    end: StageEnd | None = None


class Worker:
    """Runs `stage` at `positions`, which are numbered from 0.

    `report` takes all reports of a turn in one call.
    """

    def __init__(
        self,
        stage: Stage,
        positions: Sequence[Position],
        edges: WorkerEdges,
        mailbox: Mailbox,
        report: Callable[[list[Report]], None],
    ) -> None:
        self._stage = stage
        self._positions = positions
        self._edges = edges
        self._mailbox = mailbox
        self._report = report
        self._open: dict[str, _OpenRequest] = {}
        # Input of requests that are not open yet, by incoming edge and request.
        self._parked: dict[tuple[str, str], deque[Chunk | LaneSignal]] = {}
        self._changed: set[str] = set()
        self._runnable: dict[str, Credit] = {}
        self._reports: list[Report] = []
        self._step_log = StepLog()
        self._has_ended = False  # a request has, and its steps are not reported yet
        self._stopping = False
        self._abandoned = False

    def run(self) -> None:
        """Work until told to stop. Raises whatever the stage raises that is no RequestError."""
        try:
            self._run()
        finally:
            CORES.leave(self)

    def _run(self) -> None:
        while not self._stopping:
            orders = self._mailbox.take(block=not self._runnable)
            if self._abandoned:
                return
            self._collect()  # before the orders: an abort must find what came ahead of it
            for order in orders:
                self._carry_out(order)
            self._update_changed()
            if self._runnable:
                self._step()
                self._update_changed()
            if not self._abandoned:
                self._flush()
        if not self._abandoned:
            for request_id in list(self._open):
                self._close(request_id)

    def abandon(self) -> None:
        """From another thread: do nothing more once the present step or wait returns."""
        self._abandoned = self._stopping = True

    # A turn.

    def _carry_out(self, order: Order) -> None:
        match order:
            case Submit():
                self._submit(order)
            case Abort():
                self._abort(order)
            case AddCredit(chunks):
                for request_id in chunks.keys() & self._open.keys():
                    self._open[request_id].credit += chunks[request_id]
                    self._changed.add(request_id)
            case Connect(name, address):
                self._edges.connect(name, address)
            case Stop():
                self._stopping = True

    def _collect(self) -> None:
        """Give each request what came for it over the edges; park what is not open yet."""
        for sender in self._edges.senders.values():
            self._changed.update(sender.changed())
        for name, receiver in self._edges.receivers.items():
            for delivery in receiver.receive():
                self._queue_input(name, delivery)

    def _update_changed(self) -> None:
        """Feed each changed request, and see whether it can run, has ended or has failed."""
        while self._changed:
            request_id = self._changed.pop()
            request = self._open.get(request_id)
            self._runnable.pop(request_id, None)
            if request is None:
                continue
            if request.sender is not None and request.sender.is_lost(request_id):
                self._fail(request_id, UnavailableError("the next stage cannot be reached"))
                continue
            if request.inputs:
                try:
                    with as_request_error(request_id):
                        self._feed(request_id, request)
                except RequestError as error:
                    self._fail(request_id, error)
                    continue
            if request.end is None:
                credit = self._credit(request_id, request)
                if self._stage.ready(request_id, credit):
                    self._runnable[request_id] = credit
            else:
                self._finish_if_drained(request_id, request)

    def _step(self) -> None:
        credit, self._runnable = self._runnable, {}
        self._changed.update(credit)
        began_at = self._step_log.clock()
        num_chunks: dict[tuple[int, str], int] = {}
        failure: RequestError | None = None
        try:
            for emit in self._stage.step(credit):
                if self._abandoned:
                    return
                key = self._pass_on(emit), emit.request_id
                num_chunks[key] = num_chunks.get(key, 0) + (emit.chunk is not None)
        except RequestError as error:
            failure = error
        self._step_log.add(began_at, num_chunks)
        if failure is not None:
            self._fail(failure.request_id, failure)

    def _flush(self) -> None:
        """Wake everyone who has something new, once."""
        for sender in self._edges.senders.values():
            sender.flush()
        if self._has_ended or self._step_log.is_due:
            self._has_ended = False
            self._reports.insert(0, self._step_log.take_report())
        if self._reports:
            reports, self._reports = self._reports, []
            self._report(reports)
        for receiver in self._edges.receivers.values():
            receiver.flush()  # last: the reports need not wait for the stage before

    # What happens to one request.

    def _submit(self, order: Submit) -> None:
        position, stage_input = self._positions[order.position], order.stage_input
        receiver = None if order.incoming is None else self._edges.receivers[order.incoming]
        sender = None if order.outgoing is None else self._edges.senders[order.outgoing]
        request = _OpenRequest(
            position=order.position,
            incoming=order.incoming,
            receiver=receiver,
            sender=sender,
            client_sees=position.final,
            credit=position.max_unread,
        )
        try:
            with as_request_error(order.request_id):
                self._stage.open(order.request_id, stage_input.params)
        except RequestError as error:
            self._report_error(order.position, order.request_id, error)
            self._cancel_input(order.incoming, order.request_id)
            return
        if stage_input.source is not None:
            request.inputs.extend([*stage_input.source, LaneSignal.END])
        elif order.incoming is not None:
            key = (order.incoming, order.request_id)
            request.inputs = self._parked.pop(key, request.inputs)
        if sender is not None:
            sender.open_lane(order.request_id)
        self._open[order.request_id] = request
        CORES.enter(self)
        self._changed.add(order.request_id)

    def _queue_input(self, incoming: str, delivery: Delivery) -> None:
        if delivery.item is LaneSignal.RESET:
            self._parked = {key: items for key, items in self._parked.items() if key[0] != incoming}
            return
        request = self._open.get(delivery.request_id)
        key = (incoming, delivery.request_id)
        if request is not None and request.incoming == incoming:
            inputs = request.inputs
            self._changed.add(delivery.request_id)
        elif delivery.item is LaneSignal.ABORT:
            self._parked.pop(key, None)
            return
        else:
            inputs = self._parked.setdefault(key, deque())
        if delivery.item is LaneSignal.ABORT:
            inputs.clear()  # the order to abort is on its way
        else:
            inputs.append(delivery.item)

    def _feed(self, request_id: str, request: _OpenRequest) -> None:
        """Give the stage the input that it wants now."""
        while request.inputs:
            item = request.inputs[0]
            if isinstance(item, LaneSignal):
                self._stage.end_input(request_id)
            elif self._stage.wants_chunk(request_id):
                self._stage.feed(request_id, item)
            else:
                return
            request.inputs.popleft()
            if request.receiver is not None:
                request.receiver.consumed(request_id)

    def _credit(self, request_id: str, request: _OpenRequest) -> Credit:
        """How many chunks the request may emit now. Without an edge, every chunk is a report."""
        if request.sender is None:
            return Credit(request.credit, request.credit)
        client = request.credit if request.client_sees else UNLIMITED
        return Credit(client, request.sender.credit(request_id))

    def _pass_on(self, emit: Emit) -> int:
        """Send and report what the stage made. Returns the position of its request."""
        request = self._open[emit.request_id]
        if emit.chunk is not None:
            sender, to = request.sender, emit.to
            if sender is not None and to is not To.CLIENT:
                sender.send(emit.request_id, emit.chunk)
            if sender is None or (request.client_sees and to is not To.NEXT):
                request.credit -= 1
                output = StageOutput(emit.request_id, emit.chunk, finished=False, error=None, to=to)
                self._reports.append(Output(request.position, output))
        if emit.end is not None:
            request.end = emit.end
            self._changed.update(self._open)  # others may wait for what it held
            if request.sender is not None:
                request.sender.finish(emit.request_id)
        return request.position

    def _finish_if_drained(self, request_id: str, request: _OpenRequest) -> None:
        if request.sender is not None and not request.sender.is_drained(request_id):
            return
        end = request.end
        self._close(request_id)
        self._reports.append(Output(request.position, StageOutput(request_id, end, finished=True)))

    def _fail(self, request_id: str, error: OmniError) -> None:
        position = self._open[request_id].position
        self._close(request_id)
        self._report_error(position, request_id, error)

    def _report_error(self, position: int, request_id: str, error: OmniError) -> None:
        output = StageOutput(request_id, None, finished=True, error=error)
        self._reports.append(Output(position, output))

    def _abort(self, order: Abort) -> None:
        """Also where the request is not open: then its edge must not keep anything for it."""
        if order.request_id in self._open:
            self._close(order.request_id)
        else:
            self._cancel_input(order.incoming, order.request_id)
        self._reports.append(AbortDone(order.position, order.request_id))

    def _close(self, request_id: str) -> None:
        """The one place where a request leaves the worker."""
        request = self._open.pop(request_id)
        self._has_ended = True
        self._changed.update(self._open)
        if not self._open:
            CORES.leave(self)
        self._runnable.pop(request_id, None)
        self._stage.close(request_id)
        if request.sender is not None:
            request.sender.close_lane(request_id)
        if request.receiver is not None:
            request.receiver.cancel(request_id)

    def _cancel_input(self, incoming: str | None, request_id: str) -> None:
        if incoming is not None:
            self._parked.pop((incoming, request_id), None)
            self._edges.receivers[incoming].cancel(request_id)
