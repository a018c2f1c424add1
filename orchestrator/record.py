"""The record of a request's life: when each stage began and ended, and what the gate did.

Times are of the event loop's clock, in seconds; None means that it has not happened. A record holds
no prompt and no output, so it may be kept after the request has ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.contract.work import StageWork

Ending = Literal["finished", "failed", "aborted", "silent", "died"]


@dataclass(slots=True)
class StageRecord:
    """One stage of a request. `work` grows as its worker reports; None if it reports no work."""

    submitted_at: float | None = None
    aborted_at: float | None = None  # the abort was sent
    finished_at: float | None = None  # it holds nothing of the request any more
    ending: Ending | None = None
    work: StageWork | None = None

    def end(self, ending: Ending, now: float) -> None:
        """Note how the stage ended. Only the first call counts."""
        if self.ending is None:
            self.ending, self.finished_at = ending, now


@dataclass(slots=True)
class RequestRecord:
    """One request. `held`: the terminal waited for other stages, from `all_final_at` on.

    `on_end` is called once, a loop turn after the terminal went out.
    """

    request_id: str
    index: int
    added_at: float
    final: frozenset[int]
    stages: tuple[StageRecord, ...]
    roles: tuple[str, ...] = ()  # of the stages, where they have roles
    all_final_at: float | None = None
    held: bool = False
    closed_at: float | None = None  # it began to end early (error, abort or deadline)
    ended_at: float | None = None  # the terminal went out
    error: str | None = None
    on_end: Callable[[], None] | None = None
