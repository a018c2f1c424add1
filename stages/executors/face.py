"""A face: one pipeline position of a worker, as the orchestrator holds it.

The same for every executor; only `post`, which puts an order into the worker's inbox, differs.
Belongs to the event loop's thread.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from stages.channel import Channel
from stages.errors import UnavailableError, WorkerDiedError
from stages.executors.control import Abort, AbortDone, Credit, Output, Submit
from stages.executors.figures import StageWork
from stages.messages import Request, StageInput, StageOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.executors.control import FaceReport, Order
    from stages.executors.figures import Stepped


class Face:
    """A stage handle (see `orchestrator/handle.py`) with credit."""

    def __init__(self, index: int, post: Callable[[Order], None]) -> None:
        self._index = index
        self._post = post
        self._outputs: Channel[StageOutput] = Channel()
        self._credit: Counter[str] = Counter()
        self._aborts: dict[str, asyncio.Future[None]] = {}
        self._work: dict[str, StageWork] = {}  # of the requests that are open
        self._down: Exception | None = UnavailableError("the worker was not started")
        self._up = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """Whether the worker is running."""
        return self._down is None

    @property
    def num_open(self) -> int:
        """How many requests were submitted and are not over."""
        return len(self._work)

    @property
    def num_queued(self) -> int:
        """How many of these the stage has not begun, as far as it has told."""
        return sum(not work.busy for work in self._work.values())

    @property
    def has_pending_aborts(self) -> bool:
        """Whether an abort was not acknowledged yet."""
        return bool(self._aborts)

    async def submit(self, request_id: str, stage_input: StageInput | Request) -> None:
        """Put the request into the inbox. UnavailableError if the worker is gone."""
        if self._down is not None:
            raise UnavailableError(str(self._down))
        if isinstance(stage_input, Request):
            stage_input = stage_input.stage_input(0)
        self._work[request_id] = StageWork()
        self._post(Submit(self._index, request_id, stage_input))

    async def next_output(self) -> StageOutput:
        """The next report; WorkerDiedError once the worker is gone and all was read."""
        return await self._outputs.get()

    async def abort(self, request_id: str) -> None:
        """Stop the request; returns when the worker holds nothing of it, or is gone."""
        if self._down is not None:
            return
        done = self._aborts.get(request_id)
        if done is None:
            done = self._aborts[request_id] = asyncio.get_running_loop().create_future()
            self._post(Abort(self._index, request_id))
        await asyncio.shield(done)

    def credit(self, request_id: str, chunks: int) -> None:
        """The client consumed `chunks` more. Told once a turn of the loop: it wakes the worker."""
        if not self._credit:
            asyncio.get_running_loop().call_soon(self._tell_credit)
        self._credit[request_id] += chunks

    def _tell_credit(self) -> None:
        if self._down is None:
            self._post(Credit(dict(self._credit)))
        self._credit.clear()

    def work_of(self, request_id: str) -> StageWork | None:
        """What the stage does for an open request; it grows until the request is over."""
        return self._work.get(request_id)

    def worked(self, request_id: str, steps: list[Stepped], ahead_s: float) -> None:
        """The worker told of steps; `ahead_s` maps its clock to ours."""
        if (work := self._work.get(request_id)) is not None:
            for step in steps:
                work.add(step, ahead_s)

    def deliver(self, report: FaceReport) -> None:
        """Take one report of the worker."""
        match report:
            case Output(_, output):
                if output.finished:
                    self._work.pop(output.request_id, None)
                self._outputs.put(output)
            case AbortDone(_, request_id):
                self._work.pop(request_id, None)
                self._aborts.pop(request_id).set_result(None)

    async def up(self) -> None:
        """Returns when the worker runs (again)."""
        await self._up.wait()

    def worker_started(self) -> None:
        """The worker is ready; what an earlier one reported is no longer to be had."""
        if self._down is not None:
            self._down = None
            self._outputs = Channel()
            self._up.set()

    def worker_ended(self, cause: WorkerDiedError) -> None:
        """The worker is gone, and with it everything that it held."""
        self._down = cause
        self._up.clear()
        self._outputs.end(cause)
        self._work.clear()
        for done in self._aborts.values():
            done.set_result(None)
        self._aborts.clear()
