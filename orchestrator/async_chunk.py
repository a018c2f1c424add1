"""The second form: every stage starts at once, and chunks go from stage to stage by themselves.

Inherits everything and replaces only how a request is added and how an output is handled. The
gate in `state.py` then has work to do: reports come in any order, and the terminal waits for all.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.sequential import Orchestrator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from orchestrator.admission import Admission
    from orchestrator.state import ReqState
    from stages.contract.handle import StageHandle
    from stages.contract.messages import StageOutput


class AsyncChunkOrchestrator(Orchestrator):
    """Prewarms stages 1 and later with `prewarm_fn(stage_id, prompt)`; stage 0 gets the prompt.

    The other arguments are those of `Orchestrator`.
    """

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
    ) -> None:
        super().__init__(
            stages,
            final_stage_ids,
            lambda _stage_id, _data: None,
            drain_s=drain_s,
            abort_s=abort_s,
            on_silent=on_silent,
            admission=admission,
        )
        self._prewarm_fn = prewarm_fn

    def _handle_add(self, state: ReqState) -> None:
        """Mark all stages before the first await, so that no report can slip past the gate."""
        state.submitted.update(range(state.last_stage + 1))
        self._submit(state, 0, lambda: state.prompt)
        for stage_id in range(1, state.last_stage + 1):
            self._submit(state, stage_id, partial(self._prewarm_fn, stage_id, state.prompt))

    def _handle_output(self, state: ReqState, stage_id: int, output: StageOutput) -> None:
        """Nothing to keep and nothing to forward: only the gate."""
        self._pass_gate(state, stage_id, output)
