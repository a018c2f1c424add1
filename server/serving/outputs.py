"""The outputs of requests as the routes read them: failures are raised, and the end is checked.

`Runner` is the part of the orchestrator that is needed here: two methods, which tests can fake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from orchestrator import OrchOutput, OutputStream


class Runner(Protocol):
    """Runs requests within a context (`Orchestrator.stream`, `Orchestrator.group`)."""

    def stream(
        self,
        prompt: Any,
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AbstractAsyncContextManager[OutputStream]:
        """The outputs of one request. Leaving the context before the terminal aborts it.

        `key` identifies the caller: callers share the places fairly.
        """

    def group(
        self,
        prompts: Sequence[Any],
        *,
        last_stage: int | None = None,
        deadline_s: float | None = None,
        key: str = "",
    ) -> AbstractAsyncContextManager[OutputStream]:
        """The outputs of several requests. All are admitted together; each has a terminal."""


class Outputs:
    """The outputs of a call's requests, in order. Asking for the next one consumes the one before.

    Ends after the last terminal, and only then. Raises the error of a request that failed, and
    RuntimeError if the outputs stop without a terminal.
    """

    def __init__(self, source: AsyncIterator[OrchOutput]) -> None:
        self._source = source
        self._last: OrchOutput | None = None

    def __aiter__(self) -> Outputs:
        return self

    async def __anext__(self) -> OrchOutput:
        try:
            output = await anext(self._source)
        except StopAsyncIteration:
            if self._last is not None and self._last.finished:
                raise
            raise RuntimeError("the outputs ended without a terminal") from None
        if output.error is not None:
            raise output.error
        self._last = output
        return output
