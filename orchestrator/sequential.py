"""The first form: a stage starts when the one before it has finished, with what that one gave.

One reader per stage, one request handler, one dispatcher. Readers only carry, and let the
dispatcher run at once; the request handler only submits, and the dispatcher alone moves states (by
the table in `state.py`). Guarantees I1 to I8 and I10 for any order of reports. Knows nothing of
HTTP and nothing of what stages compute.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from orchestrator.events import Aborted, Died, Event, Failed, Reported, Revived, Undrained
from orchestrator.ids import new_request_id
from orchestrator.record import RequestRecord, StageRecord
from orchestrator.state import OrchOutput, ReqState, Verdict
from orchestrator.stats import OrchestratorStats
from orchestrator.stream import OutputStream
from stages.contract.channel import Channel
from stages.contract.errors import (
    AbortedError,
    DeadlineError,
    OmniError,
    RequestError,
    UnavailableError,
    WorkerDiedError,
)
from stages.contract.handle import WorkerHandle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from orchestrator.admission import Admission, Ticket
    from orchestrator.record import Ending
    from stages.contract.handle import StageHandle
    from stages.contract.messages import StageOutput

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Submission:
    """One stage of one request to be submitted; `make_input` runs in the request handler."""

    request_id: str
    stage_id: int
    make_input: Callable[[], Any]


class Orchestrator:
    """Runs requests through `stages`, of which the client sees `final_stage_ids`.

    `forward_fn(next_stage_id, data)` makes a stage's input from the list of what the stage before
    it gave. `drain_s`: how long a stage may stay silent once all final stages are done (I7).
    `abort_s`: how long it may take to acknowledge an abort; `on_silent` hears of one that did not.
    `admission` limits the requests of `stream`; it may be shared with other orchestrators.
    """

    def __init__(
        self,
        stages: Sequence[StageHandle],
        final_stage_ids: Iterable[int],
        forward_fn: Callable[[int, list[Any]], Any],
        *,
        drain_s: float = 2.0,
        abort_s: float = 0.5,
        on_silent: Callable[[int], None] | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._stages = list(stages)
        self._final_stage_ids = frozenset(final_stage_ids)
        self._forward_fn = forward_fn
        self._drain_s = drain_s
        self._abort_s = abort_s
        self._on_silent = on_silent
        self._admission = admission
        self._workers = {
            k: handle for k, handle in enumerate(stages) if isinstance(handle, WorkerHandle)
        }
        self._states: dict[str, ReqState] = {}
        self._down: set[int] = set()
        self._in_q: Channel[Submission] = Channel()
        self._stage_q: deque[Event] = deque()
        self._out_q: Channel[OrchOutput] = Channel()
        self._told = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._main: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()
        self._stopping = False
        self.stats = OrchestratorStats(len(self._stages))

    @property
    def is_up(self) -> bool:
        """Whether every stage takes requests: later than its worker runs again, by a moment."""
        return not self._down

    # The faces: for the seed's cases, and for the server.

    @property
    def dropped_outputs(self) -> int:
        """How many outputs came too late, of all stages."""
        return sum(stage.num_dropped for stage in self.stats.stages)

    async def start(self) -> None:
        """Begin to read the stages, which are already running."""
        # The one task without a group: it is owned here, and `shutdown` awaits it.
        self._main = asyncio.get_running_loop().create_task(self._run())

    async def shutdown(self) -> None:
        """Abort what is live, each request with its one error terminal; then end all tasks.

        Who still waits for a turn hears of it when that comes: AbortedError.
        """
        self._stopping = True
        for request_id in self._states:
            self._fail(request_id, AbortedError("the server is shutting down"))
        if self._main is None:
            return
        if self._states and not self._main.done():
            self._idle.clear()
            await self._idle.wait()  # bounded: silent stages are given up after `abort_s`
        self._main.cancel()
        await asyncio.wait([self._main])
        if not self._main.cancelled():
            self._main.result()  # a defect of ours comes out here

    async def add_request(
        self,
        request_id: str,
        prompt: Any,
        last_stage: int | None = None,
        deadline_s: float | None = None,
    ) -> None:
        """Start a request whose outputs come from `next_output`.

        Raises ValueError for an id that is live or a final set that is empty, UnavailableError
        where a stage that it needs is down, AbortedError after `shutdown`.
        """
        self._register(request_id, prompt, last_stage, deadline_s, self._out_q.put)

    async def next_output(self) -> OrchOutput:
        """The next output of any request of `add_request`; AbortedError after `shutdown`."""
        output = await self._out_q.get()
        self._consumed(output.request_id, output.stage_id, output.data)
        return output

    def abort(self, request_id: str) -> None:
        """End a request early; its error terminal comes once all stages acknowledged."""
        self._fail(request_id, AbortedError("the request was cancelled"))

    @asynccontextmanager
    async def stream(
        self,
        prompt: Any,
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AsyncIterator[OutputStream]:
        """Run one request in a scope; leaving it early aborts the request.

        Waits for its turn among the requests of other keys; that counts towards the deadline. The
        stream ends with the terminal, which on a failure has `error`. An output's credit goes back
        when the next one is asked for. Raises as `add_request`, OverloadedError, DeadlineError.
        """
        group = self.group((prompt,), last_stage=last_stage, deadline_s=deadline_s, key=key)
        async with group as outputs:
            yield outputs

    @asynccontextmanager
    async def group(
        self,
        prompts: Sequence[Any],
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AsyncIterator[OutputStream]:
        """As `stream` for several requests, admitted all or none, in one stream of outputs.

        Each output says by its `index` which request it is of; each request has its own terminal.
        """
        outputs = OutputStream([new_request_id() for _ in prompts], self._consumed)
        ids = outputs.request_ids
        tickets, deadline_s = await self._enter(key, deadline_s, len(prompts))
        try:
            for i, (request_id, prompt) in enumerate(zip(ids, prompts, strict=True)):
                record = self._register(
                    request_id, prompt, last_stage, deadline_s, outputs.put, tickets[i], i
                )
                outputs.records.append(record)
            yield outputs
        finally:
            for request_id, ticket in zip(ids, tickets, strict=True):
                if request_id in self._states:
                    self._fail(request_id, AbortedError("the client left"))
                elif ticket is not None:
                    ticket.release()  # it was not registered; else its end has released it

    # The tasks.

    async def _run(self) -> None:
        try:
            async with self._tasks:
                for stage_id in range(len(self._stages)):
                    self._tasks.create_task(self._read(stage_id))
                self._tasks.create_task(self._handle_requests())
                self._tasks.create_task(self._dispatch_what_is_told())
        finally:  # only a defect leaves requests here; even then none may hang
            for state in list(self._states.values()):
                state.close(AbortedError("the orchestrator stopped"), state.last_stage)
                self._finish(state)
            self._out_q.close(AbortedError("the orchestrator stopped"))

    async def _read(self, stage_id: int) -> None:
        """Carry one stage's outputs to the dispatcher, over its worker's deaths."""
        stage = self._stages[stage_id]
        while True:
            try:
                output = await stage.next_output()
            except Exception as cause:  # noqa: BLE001 - whatever it raises, the worker is gone
                self._tell(Died(stage_id, cause))
                if stage_id not in self._workers:
                    return
                await self._workers[stage_id].wait_until_up()
                self._tell(Revived(stage_id))
            else:  # at once: another task would cost every chunk a turn of the loop
                self._stage_q.append(Reported(stage_id, output))
                self._dispatch()

    async def _handle_requests(self) -> None:
        """Submit, one at a time and in order; a request that ends meanwhile gets its aborts."""
        while True:
            item = await self._in_q.get()
            state = self._states.get(item.request_id)
            if state is None or state.aborting:
                continue
            record = state.record.stages[item.stage_id]
            record.submitted_at = asyncio.get_running_loop().time()
            try:
                await self._stages[item.stage_id].submit(item.request_id, item.make_input())
            except Exception as cause:  # noqa: BLE001 - a stage's failure is the request's
                error = RequestError(item.request_id, f"could not be submitted: {cause!r}")
                self._fail(item.request_id, error, item.stage_id)
            else:
                if (worker := self._workers.get(item.stage_id)) is not None:
                    record.work = worker.work_of(item.request_id)

    def _tell(self, event: Event) -> None:
        """Append an event for the dispatcher, from wherever it comes."""
        self._stage_q.append(event)
        self._told.set()

    async def _dispatch_what_is_told(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            self._dispatch()

    def _dispatch(self) -> None:
        """Move states, one event at a time. A defect comes out in a task of ours, and ends all."""
        while self._stage_q:
            self._take(self._stage_q.popleft())

    def _take(self, event: Event) -> None:
        match event:
            case Reported(stage_id, output):
                self._report(stage_id, output)
            case Died(stage_id, cause):
                self._lose(stage_id, cause)
            case Revived(stage_id):
                self._down.discard(stage_id)
            case Aborted(stage_id, request_id, silent):
                self._acknowledge(stage_id, request_id, silent)
            case Failed(request_id, error, failed_stage):
                if state := self._states.get(request_id):
                    self._close(state, error, failed_stage)
            case Undrained(request_id):
                if state := self._states.get(request_id):
                    self.stats.num_drain_timeouts += 1
                    self._abort_rest(state)

    # What the second form replaces.

    def _handle_add(self, state: ReqState) -> None:
        """Mark what is submitted, and hand it to the request handler. Runs before any await."""
        if state.last_stage not in state.final:
            raise ValueError(f"last_stage {state.last_stage} is not a final stage")
        state.submitted.add(0)
        self._submit(state, 0, lambda: state.prompt)

    def _handle_output(self, state: ReqState, stage_id: int, output: StageOutput) -> None:
        """Keep the data, send what the gate lets through, then start the next stage."""
        data = state.stage_data.setdefault(stage_id, [])
        if output.data is not None:
            data.append(output.data)
        self._pass_gate(state, stage_id, output)
        following = stage_id + 1
        if not output.finished or state.closing or following > state.last_stage:
            return
        if following in self._down:
            self._close(state, UnavailableError(f"stage {following} is down"), following)
        elif following not in state.submitted:
            state.submitted.add(following)
            self._submit(state, following, lambda: self._forward_fn(following, data))

    # The steps of the dispatcher.

    async def _enter(
        self, key: str, deadline_s: float | None, places: int
    ) -> tuple[Sequence[Ticket | None], float | None]:
        """Places among the running requests, and the time that is left of the deadline."""
        if self._admission is None:
            return [None] * places, deadline_s
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            async with asyncio.timeout(deadline_s):
                ticket = await self._admission.enter(key, places)
        except TimeoutError:
            raise DeadlineError(f"the request waited longer than {deadline_s:g} s") from None
        return ticket.split(), deadline_s and deadline_s - (loop.time() - since)

    def _register(
        self,
        request_id: str,
        prompt: Any,
        last_stage: int | None,
        deadline_s: float | None,
        emit: Callable[[OrchOutput], None],
        ticket: Ticket | None = None,
        index: int = 0,
    ) -> RequestRecord:
        last = len(self._stages) - 1 if last_stage is None else last_stage
        if request_id in self._states:
            raise ValueError(f"request id {request_id!r} is live")
        if not 0 <= last < len(self._stages):
            raise ValueError(f"last_stage {last} is not one of {len(self._stages)} stages")
        final = self._final_stage_ids & set(range(last + 1))
        if not final:
            raise ValueError(f"no final stage in 0..{last}")
        if self._stopping:
            raise AbortedError("the server is shutting down")
        if down := self._down & set(range(last + 1)):
            raise UnavailableError(f"stages {sorted(down)} are down")
        loop = asyncio.get_running_loop()
        stages = tuple(StageRecord() for _ in range(last + 1))
        record = RequestRecord(request_id, index, loop.time(), final, stages)
        state = ReqState(request_id, prompt, last, final, emit, record, ticket=ticket, index=index)
        self._handle_add(state)
        self._states[request_id] = state
        if deadline_s is not None:
            error = DeadlineError(f"the request ran longer than {deadline_s:g} s")
            state.deadline = loop.call_later(deadline_s, self._fail, request_id, error)
        return record

    def _submit(self, state: ReqState, stage_id: int, make_input: Callable[[], Any]) -> None:
        self._in_q.put(Submission(state.request_id, stage_id, make_input))

    def _fail(self, request_id: str, error: Exception, stage_id: int | None = None) -> None:
        """Ask the dispatcher to end a request early; nothing happens if it is gone."""
        if request_id in self._states:
            self._tell(Failed(request_id, error, stage_id))

    def _report(self, stage_id: int, output: StageOutput) -> None:
        state = self._states.get(output.request_id)
        if state is None:
            self.stats.stages[stage_id].num_dropped += 1
            return
        if output.finished:
            self._note_end(state, stage_id, "failed" if output.error else "finished")
        if output.error is not None and not state.closing:
            if output.finished:
                state.finished.add(stage_id)
            self._close(state, output.error, stage_id)
        else:
            self._handle_output(state, stage_id, output)

    def _pass_gate(self, state: ReqState, stage_id: int, output: StageOutput) -> None:
        match state.admit(stage_id, output):
            case Verdict.SEND:
                state.emit(state.output(stage_id, output.data, finished=False))
            case Verdict.LAST:
                self._finish(state)
            case Verdict.HOLD:
                self._hold(state)
            case verdict:  # nobody will read it
                self.stats.stages[stage_id].num_dropped += verdict is Verdict.DROP
                self._consumed(state.request_id, stage_id, output.data)

    def _hold(self, state: ReqState) -> None:
        """The terminal waits for the other stages, but not for ever."""
        loop = asyncio.get_running_loop()
        state.record.held = True
        state.record.all_final_at = loop.time()
        state.cancel_timers()
        undrained = Undrained(state.request_id)
        state.bound = loop.call_later(self._drain_s, self._tell, undrained)

    def _close(self, state: ReqState, error: Exception, stage_id: int | None) -> None:
        """End early: discard, abort the rest, and let the error out when all stages are in."""
        if state.closing:
            return
        state.record.closed_at = asyncio.get_running_loop().time()
        state.record.error = type(error).__name__
        state.close(error, state.last_stage if stage_id is None else stage_id)
        state.cancel_timers()
        self._abort_rest(state)
        self._finish_if_done(state)

    def _abort_rest(self, state: ReqState) -> None:
        if state.aborting:
            return
        state.aborting = True
        now = asyncio.get_running_loop().time()
        for stage_id in sorted(state.submitted - state.finished):
            state.record.stages[stage_id].aborted_at = now
            self._tasks.create_task(self._abort(stage_id, state.request_id))

    async def _abort(self, stage_id: int, request_id: str) -> None:
        """Tell one stage to stop, and report its acknowledgement or its silence."""
        stats, clock = self.stats.stages[stage_id], asyncio.get_running_loop().time
        stats.num_aborts += 1
        silent, since = False, clock()
        try:
            async with asyncio.timeout(self._abort_s):
                await self._stages[stage_id].abort(request_id)
        except TimeoutError:
            silent = True
        except OmniError as error:  # the worker's end is as good as its word
            log.debug("abort_failed", stage=stage_id, request_id=request_id, error=repr(error))
        stats.num_silent += silent
        if not silent:
            stats.abort_s.observe(clock() - since)
        self._tell(Aborted(stage_id, request_id, silent))

    def _acknowledge(self, stage_id: int, request_id: str, silent: bool) -> None:
        state = self._states.get(request_id)
        if state is None or stage_id in state.finished:
            return
        self._note_end(state, stage_id, "silent" if silent else "aborted")
        state.finished.add(stage_id)
        if silent:
            log.warning("stage_silent", stage=stage_id, request_id=request_id)
            if self._on_silent is not None:
                self._on_silent(stage_id)
        self._finish_if_done(state)

    def _lose(self, stage_id: int, cause: Exception) -> None:
        """A worker died: what it held fails, and what it had finished goes on."""
        log.error("worker_died", stage=stage_id, error=repr(cause))
        self._down.add(stage_id)
        error = WorkerDiedError(f"the worker of stage {stage_id} died: {cause!r}")
        for state in list(self._states.values()):
            if stage_id in state.submitted - state.finished:
                self._note_end(state, stage_id, "died")
                state.finished.add(stage_id)
                self._close(state, error, stage_id)
                self._finish_if_done(state)

    def _finish_if_done(self, state: ReqState) -> None:
        if state.request_id in self._states and state.release() is Verdict.LAST:
            self._finish(state)

    def _finish(self, state: ReqState) -> None:
        """The terminal goes out, and nothing of the request stays: the one place (I1, I10)."""
        state.cancel_timers()
        self._note_terminal(state.record)
        del self._states[state.request_id]
        if state.pending_final is not None:
            state.emit(state.pending_final)
        if state.ticket is not None:
            state.ticket.release()
        if not self._states:
            self._idle.set()
        if state.record.on_end is not None:  # whatever it does, the dispatcher goes on
            asyncio.get_running_loop().call_soon(state.record.on_end)

    def _consumed(self, request_id: str, stage_id: int, data: Any) -> None:
        """Give the stage its credit back for one output."""
        handle = self._workers.get(stage_id)
        if handle is not None and data is not None:
            handle.credit(request_id, 1)

    def _note_end(self, state: ReqState, stage_id: int, ending: Ending) -> None:
        state.record.stages[stage_id].end(ending, asyncio.get_running_loop().time())

    def _note_terminal(self, record: RequestRecord) -> None:
        now = record.ended_at = asyncio.get_running_loop().time()
        if record.closed_at is None:
            if record.all_final_at is None:
                record.all_final_at = now
            self.stats.hold_s.observe(now - record.all_final_at)
