"""A request's state and the gate: what the client gets, and when its last output goes out.

The transition table is `ReqState.verdict_on`. It is pure: it moves this one state, says what to do,
and never waits. Only the dispatcher calls it, so a request has one owner.

    running ──all final, not all done──> holding (`pending_final`) ──all done──> gone
    running ──all final and all done───────────────────────────────────────────> gone
    either  ──error, abort──> closing (`pending_final` is the error) ──all done──────> gone
    running ──deadline──────> closing (a holding request has its drain time instead)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from stages.contract.messages import To

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from orchestrator.admission import Ticket
    from orchestrator.record import RequestRecord
    from stages.contract.messages import StageOutput


@dataclass(frozen=True, slots=True)
class OrchOutput:
    """What the client side gets. `finished` is True on exactly one output, the request's last.

    `index` is the request's number in its group; 0 for a single request. `role` is the stage's, if
    the stages have roles. `is_end` is True if `data` is what the stage reports at its end.
    """

    request_id: str
    stage_id: int
    data: Any
    finished: bool
    error: Exception | None = None
    index: int = 0
    role: str = ""
    is_end: bool = False


class Verdict(Enum):
    """What to do with one output."""

    SEND = auto()  # to the client, with finished=False
    LAST = auto()  # send `pending_final`, then remove the state
    HOLD = auto()  # this output became `pending_final`, which waits for the other stages
    NOTHING = auto()  # it is not for the client
    DROP = auto()  # the terminal is built already: do not send it, count it


@dataclass(slots=True)
class ReqState:
    """All that the orchestrator keeps of a request. `emit` gives an output to its reader."""

    request_id: str
    prompt: Any
    last_stage: int
    final: frozenset[int]
    emit: Callable[[OrchOutput], None]
    record: RequestRecord
    submitted: set[int] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)
    pending_final: OrchOutput | None = None
    closing: bool = False  # it ends early: outputs are discarded, `pending_final` is the error
    aborting: bool = False  # stages that have not finished are being aborted
    deadline: asyncio.TimerHandle | None = None
    drain_timer: asyncio.TimerHandle | None = None  # runs while the terminal is held
    stage_data: dict[int, list[Any]] = field(default_factory=dict)  # first form only
    ticket: Ticket | None = None  # its place among the running requests
    index: int = 0  # in its group
    roles: tuple[str, ...] = ()  # of the stages, where they have roles

    @property
    def all_final(self) -> bool:
        """Every stage whose output the client sees has finished."""
        return self.final <= self.finished

    @property
    def all_done(self) -> bool:
        """Every stage that was submitted has finished."""
        return self.submitted <= self.finished

    def verdict_on(self, stage_id: int, output: StageOutput) -> Verdict:
        """Pass one output through the gate (the table of the gate in docs/architecture.md)."""
        if output.finished:
            self.finished.add(stage_id)
        if stage_id not in self.final or self.closing:
            return self.verdict_now()
        if self.pending_final is not None:
            return Verdict.DROP
        if not self.all_final:
            return Verdict.NOTHING if output.to is To.NEXT else Verdict.SEND
        data = None if output.to is To.NEXT else output.data
        self.pending_final = self.output(stage_id, data, finished=True, is_end=data is not None)
        return Verdict.LAST if self.all_done else Verdict.HOLD

    def verdict_now(self) -> Verdict:
        """LAST if the terminal is built and all stages have finished, otherwise NOTHING."""
        ready = self.pending_final is not None and self.all_done
        return Verdict.LAST if ready else Verdict.NOTHING

    def close(self, error: Exception, stage_id: int) -> None:
        """End early: from now on outputs are discarded, and the terminal is this error."""
        self.closing = True
        self.pending_final = self.output(stage_id, None, finished=True, error=error)

    def output(
        self,
        stage_id: int,
        data: Any,
        *,
        finished: bool,
        error: Exception | None = None,
        is_end: bool = False,
    ) -> OrchOutput:
        """An output of this request."""
        role = self.roles[stage_id] if self.roles else ""
        return OrchOutput(
            self.request_id, stage_id, data, finished, error, self.index, role, is_end
        )

    def cancel_timers(self) -> None:
        """Stop all timers of this request."""
        for timer in (self.deadline, self.drain_timer):
            if timer is not None:
                timer.cancel()
