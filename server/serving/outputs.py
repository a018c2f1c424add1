"""Requests' outputs as the routes read them: a failure is raised, the end is checked.

What is asked of the orchestrator is two methods, so that tests can script them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from orchestrator import OrchOutput, OutputStream


class Runner(Protocol):
    """Runs requests in a scope (`Orchestrator.stream`, `Orchestrator.group`)."""

    def stream(
        self,
        prompt: Any,
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AbstractAsyncContextManager[OutputStream]:
        """The outputs of one request. Leaving the scope before the terminal aborts it.

        `key` stands for the caller, so that each gets a fair share of the places.
        """

    def group(
        self,
        prompts: Sequence[Any],
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AbstractAsyncContextManager[OutputStream]:
        """The outputs of several requests, admitted all or none, each with its terminal."""


class Outputs:
    """The data of a request's outputs, in order. Asking for the next one consumes the one before.

    Ends after the last terminal and only then. Raises the error of a request that failed, and
    RuntimeError where the outputs stop without a terminal. Read it in one of its two ways.
    """

    def __init__(self, source: AsyncIterator[OrchOutput]) -> None:
        self._source = source
        self._last: OrchOutput | None = None

    def __aiter__(self) -> Outputs:
        return self

    async def __anext__(self) -> Any:
        try:
            output = await anext(self._source)
        except StopAsyncIteration:
            if self._last is not None and self._last.finished:
                raise
            raise RuntimeError("the outputs ended without a terminal") from None
        if output.error is not None:
            raise output.error
        self._last = output
        return output.data

    async def of_group(self) -> AsyncGenerator[OrchOutput]:
        """The outputs whole: `index` says of which request, `finished` that this one is over."""
        async for _ in self:
            assert self._last is not None
            yield self._last
