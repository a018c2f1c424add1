"""What the orchestrator calls on a stage: submit a request, read the outputs, abort a request.

A handle is one position of one pipeline. Several handles may share a worker, and one handle may
have several replicas. The orchestrator's fakes implement the same protocols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import StageOutput
    from stages.contract.work import StageWork


class StageHandle(Protocol):
    """One position of a pipeline, seen from the orchestrator."""

    async def submit(self, request_id: str, stage_input: Any) -> None:
        """Put a request into the worker's inbox. Does not wait for the work itself.

        An exception, such as UnavailableError, fails this request only.
        """

    async def next_output(self) -> StageOutput:
        """Wait for the next output. Outputs of one stage keep their order.

        Raises WorkerDiedError when no worker is left and every output was read.
        """

    async def abort(self, request_id: str) -> None:
        """Stop a request. Returns when the stage holds nothing of it.

        Returns at once if the stage does not know the request.
        """


@runtime_checkable
class WorkerHandle(StageHandle, Protocol):
    """A handle of real workers, which need credit and can be restarted after they die."""

    async def wait_until_up(self) -> None:
        """Return when at least one worker runs."""

    @property
    def unacknowledged(self) -> Sequence[str]:
        """The names of the workers that have not acknowledged an abort yet."""

    def credit(self, request_id: str, chunks: int) -> None:
        """Return credit: the client took `chunks` more chunks. Unknown requests are ignored."""

    def work_of(self, request_id: str) -> StageWork | None:
        """What the stage has done for a submitted request; None if the request is unknown.

        The object is updated until the request is over.
        """
