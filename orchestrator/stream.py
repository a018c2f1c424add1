"""The outputs of a request, or of a group of requests, as an async iterator.

The outputs of each request come in order; the iterator ends after the last terminal. Asking for the
next output means that the one before is consumed, which returns its credit to the stage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stages.contract.channel import Channel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestrator.record import RequestRecord
    from orchestrator.state import OrchOutput


class OutputStream:
    """An async iterator over the outputs of `request_ids`; the last of each has `finished=True`.

    `records` are those of the requests. Each is still written to until its request has ended.
    """

    def __init__(
        self, request_ids: Sequence[str], on_consumed: Callable[[str, int, Any], None]
    ) -> None:
        self.request_ids = tuple(request_ids)
        self.records: list[RequestRecord] = []
        self._num_live = len(request_ids)
        self._on_consumed = on_consumed
        self._outputs: Channel[OrchOutput] = Channel()
        self._last: OrchOutput | None = None
        self.put = self._outputs.put

    @property
    def request_id(self) -> str:
        """The id of the request, or of the first one."""
        return self.request_ids[0]

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> OrchOutput:
        last = self._last
        if last is not None and last.finished:
            self._num_live -= 1
        elif last is not None:
            self._on_consumed(last.request_id, last.stage_id, last.data)
        self._last = None
        if not self._num_live:
            raise StopAsyncIteration
        self._last = await self._outputs.get()
        return self._last
