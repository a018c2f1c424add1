"""A stage worker: runs one stage for many requests, in whatever thread or process calls `run`.

Each turn: collect what the edges brought, obey orders, settle what that changed, let the stage
advance every request that can run, hand on what it made, and wake whoever waits for it, once.
Never waits for a consumer: a request without credit is not runnable, and the others go on.
A request's chunks reach the next stage in order, its end reports come after its last chunk was
consumed, and the stage has closed it by then. Does not know what the stage computes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.contract.errors import RequestError, UnavailableError
from stages.contract.messages import StageOutput
from stages.contract.stage import as_request_error
from stages.runtime.connectors.contract import LaneSignal
from stages.runtime.cores import CORES
from stages.runtime.worker.control import Abort, AbortDone, Connect, Credit, Output, Stop, Submit
from stages.runtime.worker.step_stats import StepLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stages.contract.errors import OmniError
    from stages.contract.messages import Chunk, StageEnd
    from stages.contract.stage import Emit, Stage
    from stages.runtime.connectors.contract import Delivery, Receiver, Sender
    from stages.runtime.worker.control import Mailbox, Order, Report
    from stages.runtime.worker.edges import Position, WorkerEdges


@dataclass(slots=True)
class _Open:
    """A request that is open on the stage."""

    face: int
    way_in: str | None  # the name of the inlet; None where the whole input came with the submit
    inlet: Receiver | None
    outlet: Sender | None  # None where no later stage takes the chunks
    reports: bool  # chunks go to the orchestrator
    credit: int
    waiting: deque[Chunk | LaneSignal] = field(default_factory=deque)
    end: StageEnd | None = None


class Worker:
    """Runs `stage` at all its pipeline positions; faces are these, numbered from 0.

    `report` takes each turn's reports in one call.
    """

    def __init__(
        self,
        stage: Stage,
        ports: Sequence[Position],
        ends: WorkerEdges,
        mailbox: Mailbox,
        report: Callable[[list[Report]], None],
    ) -> None:
        self._stage = stage
        self._ports = ports
        self._ends = ends
        self._mailbox = mailbox
        self._report = report
        self._open: dict[str, _Open] = {}
        self._parked: dict[tuple[str, str], deque[Chunk | LaneSignal]] = {}  # by way in and request
        self._touched: set[str] = set()
        self._runnable: dict[str, None] = {}
        self._reports: list[Report] = []
        self._diary = StepLog()
        self._has_ends = False  # among the reports
        self._stopping = False
        self._abandoned = False

    def run(self) -> None:
        """Work until told to stop. An exception that no request is to blame for comes out."""
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
                self._obey(order)
            self._settle()
            if self._runnable:
                self._step()
                self._settle()
            if not self._abandoned:
                self._flush()
        if not self._abandoned:
            for request_id in list(self._open):
                self._drop(request_id)

    def abandon(self) -> None:
        """From another thread: touch nothing more once the present step or wait returns."""
        self._abandoned = self._stopping = True

    # A turn.

    def _obey(self, order: Order) -> None:
        match order:
            case Submit():
                self._submit(order)
            case Abort():
                self._abort(order)
            case Credit(chunks):
                for request_id in chunks.keys() & self._open.keys():
                    self._open[request_id].credit += chunks[request_id]
                    self._touched.add(request_id)
            case Connect(name, address):
                self._ends.reach(name, address)
            case Stop():
                self._stopping = True

    def _collect(self) -> None:
        """Sort what the edges brought into the requests; park what is not open yet."""
        for outlet in self._ends.outlets.values():
            self._touched.update(outlet.changed())
        for name, inlet in self._ends.inlets.items():
            for delivery in inlet.receive():
                self._accept(name, delivery)

    def _settle(self) -> None:
        """Bring every request that something happened to up to date."""
        while self._touched:
            request_id = self._touched.pop()
            request = self._open.get(request_id)
            self._runnable.pop(request_id, None)
            if request is None:
                continue
            if request.outlet is not None and request.outlet.lost(request_id):
                self._fail(request_id, UnavailableError("the next stage is out of reach"))
                continue
            try:
                with as_request_error(request_id):
                    self._feed(request_id, request)
            except RequestError as error:
                self._fail(request_id, error)
                continue
            if request.end is None and self._room(request_id, request) > 0:
                if self._stage.ready(request_id):
                    self._runnable[request_id] = None
            elif request.end is not None:
                self._finish_if_drained(request_id, request)

    def _step(self) -> None:
        room = {rid: self._room(rid, self._open[rid]) for rid in self._runnable}
        self._touched.update(room)
        began_at = self._diary.clock()
        num_chunks: dict[tuple[int, str], int] = {}
        failure: RequestError | None = None
        try:
            for emit in self._stage.step(room):
                if self._abandoned:
                    return
                key = self._hand_on(emit), emit.request_id
                num_chunks[key] = num_chunks.get(key, 0) + (emit.chunk is not None)
        except RequestError as error:
            failure = error
        self._diary.note(began_at, num_chunks)
        if failure is not None:
            self._fail(failure.request_id, failure)

    def _flush(self) -> None:
        """Wake everyone who has something new, once."""
        for outlet in self._ends.outlets.values():
            outlet.flush()
        if self._has_ends or self._diary.is_due:
            self._has_ends = False
            self._reports.insert(0, self._diary.tell())
        if self._reports:
            reports, self._reports = self._reports, []
            self._report(reports)
        for inlet in self._ends.inlets.values():  # last: who is heard first need not wait for it
            inlet.flush()

    # What happens to one request.

    def _submit(self, order: Submit) -> None:
        port, given = self._ports[order.face], order.stage_input
        request = _Open(
            face=order.face,
            way_in=order.inlet,
            inlet=None if order.inlet is None else self._ends.inlets[order.inlet],
            outlet=None if order.outlet is None else self._ends.outlets[order.outlet],
            reports=port.final or not given.has_next,
            credit=port.max_unread,
        )
        try:
            with as_request_error(order.request_id):
                self._stage.open(order.request_id, given.params)
        except RequestError as error:
            self._report_error(order.face, order.request_id, error)
            self._hang_up(order.inlet, order.request_id)
            return
        if given.source is not None:
            request.waiting.extend([*given.source, LaneSignal.END])
        elif order.inlet is not None:
            key = (order.inlet, order.request_id)
            request.waiting = self._parked.pop(key, request.waiting)
        if request.outlet is not None:
            request.outlet.open(order.request_id)
        self._open[order.request_id] = request
        CORES.enter(self)
        self._touched.add(order.request_id)

    def _accept(self, way_in: str, delivery: Delivery) -> None:
        if delivery.item is LaneSignal.RESET:
            self._parked = {key: items for key, items in self._parked.items() if key[0] != way_in}
            return
        request = self._open.get(delivery.request_id)
        key = (way_in, delivery.request_id)
        if request is not None and request.way_in == way_in:
            waiting = request.waiting
            self._touched.add(delivery.request_id)
        elif delivery.item is LaneSignal.FAIL:
            self._parked.pop(key, None)
            return
        else:
            waiting = self._parked.setdefault(key, deque())
        if delivery.item is LaneSignal.FAIL:
            waiting.clear()  # its abort is on the way
        else:
            waiting.append(delivery.item)

    def _feed(self, request_id: str, request: _Open) -> None:
        """Give the stage the input that it wants now."""
        while request.waiting:
            item = request.waiting[0]
            if isinstance(item, LaneSignal):
                self._stage.end_input(request_id)
            elif self._stage.wants_chunk(request_id):
                self._stage.feed(request_id, item)
            else:
                return
            request.waiting.popleft()
            if request.inlet is not None:
                request.inlet.consumed(request_id)

    def _room(self, request_id: str, request: _Open) -> int:
        """How many chunks the request may emit now."""
        room = request.credit if request.reports else None
        if request.outlet is not None:
            edge = request.outlet.room(request_id)
            room = edge if room is None else min(room, edge)
        return room or 0

    def _hand_on(self, emit: Emit) -> int:
        """Send what was made on its way; the face of its request."""
        request = self._open[emit.request_id]
        if emit.chunk is not None:
            if request.outlet is not None:
                request.outlet.send(emit.request_id, emit.chunk)
            if request.reports:
                request.credit -= 1
                output = StageOutput(emit.request_id, emit.chunk, finished=False)
                self._reports.append(Output(request.face, output))
        if emit.end is not None:
            request.end = emit.end
            self._touched.update(self._open)  # what it held may be what others wait for
            if request.outlet is not None:
                request.outlet.end(emit.request_id)
        return request.face

    def _finish_if_drained(self, request_id: str, request: _Open) -> None:
        if request.outlet is not None and not request.outlet.drained(request_id):
            return
        end = request.end
        self._drop(request_id)
        self._reports.append(Output(request.face, StageOutput(request_id, end, finished=True)))

    def _fail(self, request_id: str, error: OmniError) -> None:
        face = self._open[request_id].face
        self._drop(request_id)
        self._report_error(face, request_id, error)

    def _report_error(self, face: int, request_id: str, error: OmniError) -> None:
        output = StageOutput(request_id, None, finished=True, error=error)
        self._reports.append(Output(face, output))

    def _abort(self, order: Abort) -> None:
        """Also where the request never came: then its edge must not keep anything for it."""
        if order.request_id in self._open:
            self._drop(order.request_id)
        else:
            self._hang_up(order.inlet, order.request_id)
        self._reports.append(AbortDone(order.face, order.request_id))

    def _drop(self, request_id: str) -> None:
        """The one place where a request leaves the worker."""
        request = self._open.pop(request_id)
        self._has_ends = True
        self._touched.update(self._open)
        if not self._open:
            CORES.leave(self)
        self._runnable.pop(request_id, None)
        self._stage.close(request_id)
        if request.outlet is not None:
            request.outlet.close(request_id)
        if request.inlet is not None:
            request.inlet.hang_up(request_id)

    def _hang_up(self, way_in: str | None, request_id: str) -> None:
        if way_in is not None:
            self._parked.pop((way_in, request_id), None)
            self._ends.inlets[way_in].hang_up(request_id)
