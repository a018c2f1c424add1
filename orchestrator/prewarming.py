"""The second form (async chunks): every stage is submitted at once, with a placeholder input.

Each stage then listens before the first chunk comes, and chunks go from stage to stage over
connectors. Reports come in any order, so the gate in `state.py` has work to do.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.dispatcher import Dispatcher
    from orchestrator.state import ReqState
    from stages.contract.messages import StageOutput


class Prewarming:
    """See Form. `prewarm_fn(stage_id, prompt)` makes the input of stages 1 and later."""

    def __init__(self, prewarm_fn: Callable[[int, Any], Any]) -> None:
        self._prewarm_fn = prewarm_fn

    def add(self, state: ReqState, dispatcher: Dispatcher) -> None:
        """Submit all stages in order. All are marked before the first await: see I2 and I3."""
        dispatcher.submit(state, 0, lambda: state.prompt)
        for stage_id in range(1, state.last_stage + 1):
            make_input = partial(self._prewarm_fn, stage_id, state.prompt)
            dispatcher.submit(state, stage_id, make_input)

    def handle(
        self, state: ReqState, stage_id: int, output: StageOutput, dispatcher: Dispatcher
    ) -> None:
        """Pass the gate: there is nothing to keep and nothing to forward."""
        dispatcher.pass_gate(state, stage_id, output)
