"""The first form: a stage is submitted when the one before it has finished.

Its input is made of everything that the stage before gave (`forward_fn`). The orchestrator carries
the data, so this form needs no connectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.contract.errors import UnavailableError
from stages.contract.messages import To

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.dispatcher import Dispatcher
    from orchestrator.state import ReqState
    from stages.contract.messages import StageOutput


class Forwarding:
    """See Form. `forward_fn(next_stage_id, data)` makes a stage's input from a list of data."""

    def __init__(self, forward_fn: Callable[[int, list[Any]], Any]) -> None:
        self._forward_fn = forward_fn

    def add(self, state: ReqState, dispatcher: Dispatcher) -> None:
        """Submit stage 0 with the prompt."""
        if state.last_stage not in state.final:
            raise ValueError(f"last_stage {state.last_stage} is not a final stage")
        dispatcher.submit(state, 0, lambda: state.prompt)

    def handle(
        self, state: ReqState, stage_id: int, output: StageOutput, dispatcher: Dispatcher
    ) -> None:
        """Keep what is for the next stage, pass the gate, and submit that stage after the end."""
        following = stage_id + 1
        data = state.stage_data.setdefault(stage_id, [])
        if output.data is not None and output.to is not To.CLIENT and following <= state.last_stage:
            data.append(output.data)
        dispatcher.pass_gate(state, stage_id, output)
        if not output.finished or state.closing or following > state.last_stage:
            return
        if following in dispatcher.down:
            dispatcher.close(state, UnavailableError(f"stage {following} is down"), following)
        elif following not in state.submitted:
            dispatcher.submit(state, following, lambda: self._forward_fn(following, data))
