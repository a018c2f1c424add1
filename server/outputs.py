"""A request's outputs as the routes read them: a failure is raised, the end is checked.

What is asked of the orchestrator is one method, so that tests can script it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from orchestrator import OrchOutput


class Runner(Protocol):
    """Runs a request in a scope (`Orchestrator.stream`)."""

    def stream(
        self,
        prompt: Any,
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AbstractAsyncContextManager[AsyncIterator[OrchOutput]]:
        """The outputs of one request. Leaving the scope before the terminal aborts it.

        `key` stands for the caller, so that each gets a fair share of the places.
        """


class Outputs:
    """The data of a request's outputs, in order. Asking for the next one consumes the one before.

    Ends after the terminal and only then. Raises the error of a request that failed, and
    RuntimeError where the outputs stop without a terminal.
    """

    def __init__(self, source: AsyncIterator[OrchOutput]) -> None:
        self._source = source
        self._finished = False

    def __aiter__(self) -> Outputs:
        return self

    async def __anext__(self) -> Any:
        if self._finished:
            raise StopAsyncIteration
        try:
            output = await anext(self._source)
        except StopAsyncIteration:
            raise RuntimeError("the outputs ended without a terminal") from None
        if output.error is not None:
            raise output.error
        self._finished = output.finished
        return output.data
