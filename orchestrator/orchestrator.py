"""The orchestrator as others use it: it runs requests through stages, in either of two forms.

It joins the parts: one reader for each stage and the dispatcher (`dispatcher.py`), the submitter
(`submitter.py`), one form (`forwarding.py` or `prewarming.py`), admission and streams. Readers only
carry reports, the submitter only submits, and the dispatcher alone moves states. It knows nothing
of HTTP and nothing of what stages compute. Everything here runs in the event loop's thread.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import structlog

from orchestrator.dispatcher import Dispatcher, Limits
from orchestrator.events import Died, Revived
from orchestrator.forwarding import Forwarding
from orchestrator.ids import new_request_id
from orchestrator.prewarming import Prewarming
from orchestrator.record import RequestRecord, StageRecord
from orchestrator.state import OrchOutput, ReqState
from orchestrator.stats import OrchestratorStats
from orchestrator.stream import OutputStream
from orchestrator.submitter import submit_all
from stages.contract.channel import Channel
from stages.contract.errors import AbortedError, DeadlineError, UnavailableError
from stages.contract.handle import WorkerHandle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from orchestrator.admission import Admission, Ticket
    from stages.contract.handle import StageHandle


log = structlog.get_logger(__name__)


class Orchestrator:
    """Runs requests through `stages`, of which the client sees `final_stage_ids`.

    This form submits a stage when the one before it has finished: `forward_fn(next_stage_id, data)`
    makes its input from the list of what that one gave. `drain_s`: how long a stage may stay silent
    once all final stages have finished (I7). `abort_s`: how long it may take to acknowledge an
    abort; `on_silent` is called with each stage that did not. `admission` limits the requests of
    `stream` and `group`; several orchestrators may share it. `roles` name the stages in
    outputs and records.
    """

    _form: ClassVar[type[Forwarding | Prewarming]] = Forwarding

    def __init__(
        self,
        stages: Sequence[StageHandle],
        final_stage_ids: Iterable[int],
        forward_fn: Callable[[int, Any], Any],
        *,
        drain_s: float = 2.0,
        abort_s: float = 0.5,
        on_silent: Callable[[int], None] | None = None,
        admission: Admission | None = None,
        roles: Sequence[str] = (),
    ) -> None:
        self._roles = tuple(roles)
        self._stages = list(stages)
        self._final_stage_ids = frozenset(final_stage_ids)
        self._admission = admission
        self._workers = {k: each for k, each in enumerate(stages) if isinstance(each, WorkerHandle)}
        self._outputs: Channel[OrchOutput] = Channel()
        self._tasks = asyncio.TaskGroup()
        self._main: asyncio.Task[None] | None = None
        self._stopping = False
        self.stats = OrchestratorStats(len(self._stages))
        self._dispatcher = Dispatcher(
            self._form(forward_fn),
            self._stages,
            self._workers,
            self.stats,
            Limits(drain_s, abort_s, on_silent),
            self._tasks.create_task,
        )

    @property
    def is_up(self) -> bool:
        """Whether requests are taken: every stage has a worker, and nothing has stopped us."""
        return not self._stopping and not self._dispatcher.down

    @property
    def dropped_outputs(self) -> int:
        """How many outputs came too late, of all stages."""
        return sum(stage.num_dropped for stage in self.stats.stages)

    @property
    def live_requests(self) -> frozenset[str]:
        """The ids of the requests that have not ended."""
        return frozenset(self._dispatcher.states)

    async def start(self) -> None:
        """Begin to read the stages, which are already running."""
        # The one task without a group: this object owns it, and `shutdown` awaits it.
        self._main = asyncio.get_running_loop().create_task(self._run())

    async def shutdown(self) -> None:
        """Abort every live request, each with its one error terminal; then end all tasks.

        A request that still waits for a place gets AbortedError when its turn comes.
        """
        self._stopping = True
        for request_id in self.live_requests:
            self._dispatcher.fail(request_id, AbortedError("the server is shutting down"))
        if self._main is None:
            return
        if self._dispatcher.states and not self._main.done():
            self._dispatcher.idle.clear()
            await self._dispatcher.idle.wait()  # bounded: silent stages are given up
        self._main.cancel()
        await asyncio.wait([self._main])
        if not self._main.cancelled():
            self._main.result()  # a defect of ours is raised here

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
        self._register(request_id, prompt, last_stage, deadline_s, self._outputs.put)

    async def next_output(self) -> OrchOutput:
        """The next output of any request of `add_request`; AbortedError after `shutdown`."""
        output = await self._outputs.get()
        self._dispatcher.consumed(output.request_id, output.stage_id, output.data)
        return output

    def abort(self, request_id: str) -> None:
        """End a request early. Its error terminal comes once all stages have acknowledged."""
        self._dispatcher.fail(request_id, AbortedError("the request was cancelled"))

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

        It waits for its turn among the requests of other keys; that counts towards the deadline.
        The stream ends with the terminal, which on a failure has `error`. An output's credit goes
        back when the next one is asked for. Raises as `add_request`, OverloadedError,
        DeadlineError.
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

        `index` of an output says which request it belongs to; each request has its own terminal.
        """
        outputs = OutputStream([new_request_id() for _ in prompts], self._dispatcher.consumed)
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
                if request_id in self._dispatcher.states:
                    self._dispatcher.fail(request_id, AbortedError("the client left"))
                elif ticket is not None:
                    ticket.release()  # it was not registered; otherwise its end has released it

    async def _run(self) -> None:
        try:
            async with self._tasks as tasks:
                for stage_id in range(len(self._stages)):
                    tasks.create_task(self._read(stage_id))
                tasks.create_task(submit_all(self._dispatcher, self._stages, self._workers))
                tasks.create_task(self._dispatcher.run())
        except ExceptionGroup as defects:  # raised again where `shutdown` awaits this task
            log.error("orchestrator_stopped", errors=[repr(each) for each in defects.exceptions])
            raise
        finally:  # also after a defect of ours: no request may hang, and no new one may start
            self._stopping = True
            error = AbortedError("the orchestrator stopped")
            self._dispatcher.finish_all(error)
            self._outputs.close(error)

    async def _read(self, stage_id: int) -> None:
        """Carry one stage's reports to the dispatcher, also after its worker came back."""
        stage = self._stages[stage_id]
        while True:
            try:
                output = await stage.next_output()
            except Exception as cause:  # noqa: BLE001 - whatever it raises, the worker is gone
                self._dispatcher.post(Died(stage_id, cause))
                if stage_id not in self._workers:
                    return
                await self._workers[stage_id].wait_until_up()
                self._dispatcher.post(Revived(stage_id))
            else:
                self._dispatcher.report(stage_id, output)

    async def _enter(
        self, key: str, deadline_s: float | None, num_places: int
    ) -> tuple[Sequence[Ticket | None], float | None]:
        """Places among the running requests, and what is left of the deadline."""
        if self._admission is None:
            return [None] * num_places, deadline_s
        clock = asyncio.get_running_loop().time
        since = clock()
        try:
            async with asyncio.timeout(deadline_s):
                ticket = await self._admission.enter(key, num_places)
        except TimeoutError:
            raise DeadlineError(f"the request waited longer than {deadline_s:g} s") from None
        return ticket.split(), deadline_s and deadline_s - (clock() - since)

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
        """Make a request's state and hand it to the dispatcher, before any await."""
        last, final = self._stages_of(request_id, last_stage)
        loop = asyncio.get_running_loop()
        stages = tuple(StageRecord() for _ in range(last + 1))
        record = RequestRecord(request_id, index, loop.time(), final, stages, self._roles)
        state = ReqState(
            request_id,
            prompt,
            last,
            final,
            emit,
            record,
            ticket=ticket,
            index=index,
            roles=self._roles,
        )
        self._dispatcher.add(state)
        if deadline_s is not None:
            error = DeadlineError(f"the request ran longer than {deadline_s:g} s")
            state.deadline = loop.call_later(deadline_s, self._dispatcher.fail, request_id, error)
        return record

    def _stages_of(self, request_id: str, last_stage: int | None) -> tuple[int, frozenset[int]]:
        """The last stage and the final stages of a new request, or what makes it impossible."""
        last = len(self._stages) - 1 if last_stage is None else last_stage
        if request_id in self._dispatcher.states:
            raise ValueError(f"request id {request_id!r} is live")
        if not 0 <= last < len(self._stages):
            raise ValueError(f"last_stage {last} is not one of {len(self._stages)} stages")
        final = self._final_stage_ids & set(range(last + 1))
        if not final:
            raise ValueError(f"no final stage in 0..{last}")
        if self._stopping:
            raise AbortedError("the server is shutting down")
        if down := self._dispatcher.down & set(range(last + 1)):
            raise UnavailableError(f"stages {sorted(down)} are down")
        return last, final


class AsyncChunkOrchestrator(Orchestrator):
    """Submits all stages at once: stage 0 with the prompt, later ones with a placeholder.

    `prewarm_fn(stage_id, prompt)` makes the placeholder. The rest is as in `Orchestrator`.
    """

    _form = Prewarming

    def __init__(
        self,
        stages: Sequence[StageHandle],
        final_stage_ids: Iterable[int],
        prewarm_fn: Callable[[int, Any], Any],
        *,
        drain_s: float = 2.0,
        abort_s: float = 0.5,
        on_silent: Callable[[int], None] | None = None,
        admission: Admission | None = None,
        roles: Sequence[str] = (),
    ) -> None:
        super().__init__(
            stages,
            final_stage_ids,
            prewarm_fn,
            drain_s=drain_s,
            abort_s=abort_s,
            on_silent=on_silent,
            admission=admission,
            roles=roles,
        )
