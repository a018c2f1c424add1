"""What the orchestrator needs of a stage: submit to it, read its reports, abort on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import StageOutput
    from stages.contract.work import StageWork


class StageHandle(Protocol):
    """One pipeline position of a stage worker, seen from the orchestrator."""

    async def submit(self, request_id: str, stage_input: Any) -> None:
        """Put a request into the worker's inbox; never waits for the work. Raising fails it."""

    async def next_output(self) -> StageOutput:
        """The next report, in the order in which the stage made them. Raising: the worker died."""

    async def abort(self, request_id: str) -> None:
        """Stop a request; returns once the stage holds nothing of it (also if it never did)."""


@runtime_checkable
class WorkerHandle(StageHandle, Protocol):
    """A handle of a real worker: it keeps credit, and can be started again after it died."""

    async def up(self) -> None:
        """Returns when the worker runs."""

    @property
    def aborting_workers(self) -> Sequence[str]:
        """The names of the workers that have not acknowledged an abort yet."""

    def credit(self, request_id: str, chunks: int) -> None:
        """The client took `chunks` more outputs with data. Unknown ids are ignored."""

    def work_of(self, request_id: str) -> StageWork | None:
        """What the stage does for a request, from its submit on; it grows until the end."""
