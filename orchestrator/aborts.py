"""The abort protocol: every stage that has not finished is told to stop, and acknowledges in time.

An acknowledgement, a worker's death or `abort_s` of silence: each becomes one `Aborted` event, so
that a request which ends early always ends (I7 to I9). What follows is the dispatcher's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

from orchestrator.events import Aborted
from stages.contract.errors import OmniError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from orchestrator.events import Event
    from orchestrator.state import ReqState
    from orchestrator.stats import OrchestratorStats
    from stages.contract.handle import StageHandle

log = structlog.get_logger(__name__)


class Aborts:
    """Sends aborts to `stages` in tasks that `spawn` starts, and posts how each one ended."""

    def __init__(
        self,
        stages: Sequence[StageHandle],
        stats: OrchestratorStats,
        abort_s: float,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        post: Callable[[Event], None],
    ) -> None:
        self._stages = stages
        self._stats = stats
        self._abort_s = abort_s
        self._spawn = spawn
        self._post = post

    def abort_rest(self, state: ReqState) -> None:
        """Abort each submitted stage that has not finished. A second call does nothing."""
        if state.aborting:
            return
        state.aborting = True
        now = asyncio.get_running_loop().time()
        for stage_id in sorted(state.submitted - state.finished):
            state.record.stages[stage_id].aborted_at = now
            self._spawn(self._abort(stage_id, state.request_id))

    async def _abort(self, stage_id: int, request_id: str) -> None:
        stats, clock = self._stats.stages[stage_id], asyncio.get_running_loop().time
        stats.num_aborts += 1
        silent, since = False, clock()
        try:
            async with asyncio.timeout(self._abort_s):
                await self._stages[stage_id].abort(request_id)
        except TimeoutError:
            silent = True
        except OmniError as error:  # a worker that is gone holds nothing either
            log.debug("abort_failed", stage=stage_id, request_id=request_id, error=repr(error))
        stats.num_silent += silent
        if not silent:
            stats.abort_s.observe(clock() - since)
        self._post(Aborted(stage_id, request_id, silent))
