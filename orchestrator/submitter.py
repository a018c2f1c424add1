"""Submits stages to their workers: one at a time, in the order in which the dispatcher asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from stages.contract.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.dispatcher import Dispatcher
    from stages.contract.handle import StageHandle, WorkerHandle


async def submit_all(
    dispatcher: Dispatcher, stages: Sequence[StageHandle], workers: Mapping[int, WorkerHandle]
) -> None:
    """Take submissions for ever. A stage that refuses its submission fails the request.

    A request that has ended, or whose stages are being aborted, is not submitted any more: its
    abort takes the place of its submission (I3).
    """
    clock = asyncio.get_running_loop().time
    while True:
        item = await dispatcher.submissions.get()
        state = dispatcher.states.get(item.request_id)
        if state is None or state.aborting:
            continue
        record = state.record.stages[item.stage_id]
        record.submitted_at = clock()
        try:
            await stages[item.stage_id].submit(item.request_id, item.make_input())
        except Exception as cause:  # noqa: BLE001 - a stage's failure is the request's
            error = RequestError(item.request_id, f"could not be submitted: {cause!r}")
            dispatcher.fail(item.request_id, error, item.stage_id)
        else:
            if (worker := workers.get(item.stage_id)) is not None:
                record.work = worker.work_of(item.request_id)
