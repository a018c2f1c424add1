"""The outputs of one request as its reader sees them: in order, ended by the terminal.

Coming back for the next output says that the one before is consumed, and returns its credit.
Does not know how the request is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.state import OrchOutput


class OutputStream:
    """An async iterator over the outputs of `request_id`; the last one has `finished=True`."""

    def __init__(self, request_id: str, on_consumed: Callable[[str, int, Any], None]) -> None:
        self.request_id = request_id
        self._on_consumed = on_consumed
        self._outputs: Channel[OrchOutput] = Channel()
        self._last: OrchOutput | None = None
        self.put = self._outputs.put

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> OrchOutput:
        last = self._last
        if last is not None:
            if last.finished:
                raise StopAsyncIteration
            self._on_consumed(self.request_id, last.stage_id, last.data)
        self._last = None
        self._last = await self._outputs.get()
        return self._last
