"""Moves the states of requests: one event at a time, by the table in `state.py`.

Everything that can move a state arrives here, as a report or as an event (`events.py`). Only this
code moves states, it never awaits, and it runs in the event loop's thread, so no state is ever seen
half moved. It guarantees I1 to I8 and I10 for any order of reports. What differs between the two
forms of the orchestrator is behind `Form`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from orchestrator.aborts import Aborts
from orchestrator.events import Aborted, Died, Event, Failed, Revived, Undrained
from orchestrator.state import Verdict
from stages.contract.channel import Channel
from stages.contract.errors import WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from orchestrator.record import Ending, RequestRecord
    from orchestrator.state import ReqState
    from orchestrator.stats import OrchestratorStats
    from stages.contract.handle import StageHandle, WorkerHandle
    from stages.contract.messages import StageOutput

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Submission:
    """One stage of one request, to be submitted. `make_input` is called just before."""

    request_id: str
    stage_id: int
    make_input: Callable[[], Any]


class Form(Protocol):
    """When the stages of a request are submitted, and with what input."""

    def add(self, state: ReqState, dispatcher: Dispatcher) -> None:
        """Mark the stages that are submitted at once, and submit them. ValueError: not possible."""

    def handle(
        self, state: ReqState, stage_id: int, output: StageOutput, dispatcher: Dispatcher
    ) -> None:
        """Pass one output of a live request through the gate, and submit what follows from it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long the orchestrator waits for a stage, in seconds.

    `drain_s`: for the rest, once all final stages have finished (I7). `abort_s`: for the
    acknowledgement of an abort. `on_silent` is called with each stage that did not acknowledge.
    """

    drain_s: float = 2.0
    abort_s: float = 0.5
    on_silent: Callable[[int], None] | None = None


class Dispatcher:
    """Owns the states of all live requests. `submissions` is read by the submitter."""

    def __init__(
        self,
        form: Form,
        stages: Sequence[StageHandle],
        workers: Mapping[int, WorkerHandle],
        stats: OrchestratorStats,
        limits: Limits,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.states: dict[str, ReqState] = {}
        self.down: set[int] = set()  # stages without a worker
        self.idle = asyncio.Event()  # set when the last live request has ended
        self.submissions: Channel[Submission] = Channel()
        self._form = form
        self._workers = workers
        self._stats = stats
        self._limits = limits
        self._aborts = Aborts(stages, stats, limits.abort_s, spawn, self.post)
        self._events: deque[Event] = deque()
        self._posted = asyncio.Event()

    # Where events come from.

    def add(self, state: ReqState) -> None:
        """A new request. Runs before any await, so no report can come before its state."""
        self._form.add(state, self)
        self.states[state.request_id] = state

    def post(self, event: Event) -> None:
        """Queue an event, which `run` handles."""
        self._events.append(event)
        self._posted.set()

    def report(self, stage_id: int, output: StageOutput) -> None:
        """Handle a stage's report at once, after the events that came before it.

        An event and another task would cost each chunk an object and a turn of the loop.
        """
        if self._events:
            self.dispatch()
        self._on_report(stage_id, output)

    def fail(self, request_id: str, error: Exception, stage_id: int | None = None) -> None:
        """End a request early. Nothing happens if it has ended."""
        if request_id in self.states:
            self.post(Failed(request_id, error, stage_id))

    async def run(self) -> None:
        """Handle posted events for ever."""
        while True:
            await self._posted.wait()
            self._posted.clear()
            self.dispatch()

    def dispatch(self) -> None:
        """Handle all events. A defect raises in the task that called, and ends everything."""
        while self._events:
            self._handle(self._events.popleft())

    def _handle(self, event: Event) -> None:
        match event:
            case Died(stage_id, cause):
                self._on_death(stage_id, cause)
            case Revived(stage_id):
                self.down.discard(stage_id)
            case Aborted(stage_id, request_id, silent):
                self._on_aborted(stage_id, request_id, silent)
            case Failed(request_id, error, failed_stage):
                if state := self.states.get(request_id):
                    self.close(state, error, failed_stage)
            case Undrained(request_id):
                if state := self.states.get(request_id):
                    self._stats.num_drain_timeouts += 1
                    self._aborts.abort_rest(state)

    # One step for each kind of event, and for reports.

    def _on_report(self, stage_id: int, output: StageOutput) -> None:
        state = self.states.get(output.request_id)
        if state is None:
            self._stats.stages[stage_id].num_dropped += 1
            return
        if output.finished:
            self._note_stage_end(state, stage_id, _ending_of(output.error))
        if output.error is not None and not state.closing:
            if output.finished:
                state.finished.add(stage_id)
            self.close(state, output.error, stage_id)
        else:
            self._form.handle(state, stage_id, output, self)

    def _on_death(self, stage_id: int, cause: Exception) -> None:
        """All workers of a stage are gone. Requests that it had not finished fail; others go on."""
        log.error("worker_died", stage=stage_id, error=repr(cause))
        self.down.add(stage_id)
        error = WorkerDiedError(f"the worker of stage {stage_id} died: {cause!r}")
        for state in list(self.states.values()):
            if stage_id in state.submitted - state.finished:
                self._note_stage_end(state, stage_id, "died")
                state.finished.add(stage_id)
                self.close(state, error, stage_id)
                self._finish_if_done(state)

    def _on_aborted(self, stage_id: int, request_id: str, silent: bool) -> None:
        state = self.states.get(request_id)
        if state is None or stage_id in state.finished:
            return
        self._note_stage_end(state, stage_id, "silent" if silent else "aborted")
        state.finished.add(stage_id)
        if silent:
            log.warning("stage_silent", stage=stage_id, request_id=request_id)
            if self._limits.on_silent is not None:
                self._limits.on_silent(stage_id)
        self._finish_if_done(state)

    # What the forms use.

    def submit(self, state: ReqState, stage_id: int, make_input: Callable[[], Any]) -> None:
        """Mark a stage as submitted, and queue its submission. Each stage at most once (I3)."""
        state.submitted.add(stage_id)
        self.submissions.put(Submission(state.request_id, stage_id, make_input))

    def pass_gate(self, state: ReqState, stage_id: int, output: StageOutput) -> None:
        """Do with one output what the gate says."""
        match state.verdict_on(stage_id, output):
            case Verdict.SEND:
                is_end = output.finished and output.data is not None
                state.emit(state.output(stage_id, output.data, finished=False, is_end=is_end))
            case Verdict.LAST:
                self._finish(state)
            case Verdict.HOLD:
                self._hold(state)
            case Verdict.DROP:
                self._stats.stages[stage_id].num_dropped += 1
                self.consumed(state.request_id, stage_id, output.data)
            case Verdict.NOTHING:  # nobody will read it
                self.consumed(state.request_id, stage_id, output.data)

    def close(self, state: ReqState, error: Exception, stage_id: int | None) -> None:
        """End early: discard outputs, abort the other stages, then send the error."""
        if state.closing:
            return
        state.record.closed_at = asyncio.get_running_loop().time()
        state.record.error = type(error).__name__
        state.close(error, state.last_stage if stage_id is None else stage_id)
        state.cancel_timers()
        self._aborts.abort_rest(state)
        self._finish_if_done(state)

    # Ends.

    def _hold(self, state: ReqState) -> None:
        """The terminal waits for the other stages, at most `drain_s`."""
        loop = asyncio.get_running_loop()
        state.record.held = True
        state.record.all_final_at = loop.time()
        state.cancel_timers()
        undrained = Undrained(state.request_id)
        state.drain_timer = loop.call_later(self._limits.drain_s, self.post, undrained)

    def _finish_if_done(self, state: ReqState) -> None:
        if state.request_id in self.states and state.verdict_now() is Verdict.LAST:
            self._finish(state)

    def _finish(self, state: ReqState) -> None:
        """Send the terminal and remove everything of the request: the one place (I1, I10)."""
        state.cancel_timers()
        self._note_terminal(state.record)
        del self.states[state.request_id]
        if state.pending_final is not None:
            state.emit(state.pending_final)
        if state.ticket is not None:
            state.ticket.release()
        if not self.states:
            self.idle.set()
        if state.record.on_end is not None:  # called later: whatever it raises, we go on
            asyncio.get_running_loop().call_soon(state.record.on_end)

    def finish_all(self, error: Exception) -> None:
        """Send each live request its error now: our own code has raised, and none may hang."""
        for state in list(self.states.values()):
            state.close(error, state.last_stage)
            self._finish(state)

    def consumed(self, request_id: str, stage_id: int, data: Any) -> None:
        """Return a stage's credit for one output that was read or dropped."""
        worker = self._workers.get(stage_id)
        if worker is not None and data is not None:
            worker.credit(request_id, 1)

    def _note_stage_end(self, state: ReqState, stage_id: int, ending: Ending) -> None:
        state.record.stages[stage_id].end(ending, asyncio.get_running_loop().time())

    def _note_terminal(self, record: RequestRecord) -> None:
        now = record.ended_at = asyncio.get_running_loop().time()
        if record.closed_at is None:
            if record.all_final_at is None:
                record.all_final_at = now
            self._stats.hold_s.observe(now - record.all_final_at)


def _ending_of(error: Exception | None) -> Ending:
    """How a stage ended that reported its end, or whose worker died."""
    if error is None:
        return "finished"
    return "died" if isinstance(error, WorkerDiedError) else "failed"
