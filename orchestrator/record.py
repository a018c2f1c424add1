"""What is noted of a request's life: when each stage began and ended, and what the gate did.

Plain times of the event loop's clock, in seconds; None is what has not happened. Holds nothing of
what was asked or answered, so it may be kept when the request is gone.
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
    """One stage of a request. `work` is what its worker tells, None where it tells nothing."""

    submitted_at: float | None = None
    aborted_at: float | None = None  # it was told to stop
    finished_at: float | None = None  # it holds nothing any more
    ending: Ending | None = None
    work: StageWork | None = None

    def end(self, ending: Ending, now: float) -> None:
        """It is over; only the first end counts."""
        if self.ending is None:
            self.ending, self.finished_at = ending, now


@dataclass(slots=True)
class RequestRecord:
    """One request. `held`: the terminal waited for other stages, from `all_final_at` on."""

    request_id: str
    index: int
    added_at: float
    final: frozenset[int]
    stages: tuple[StageRecord, ...]
    all_final_at: float | None = None
    held: bool = False
    closed_at: float | None = None  # it began to end early
    ended_at: float | None = None  # the terminal went out
    error: str | None = None
    on_end: Callable[[], None] | None = None
