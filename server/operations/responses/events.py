"""A response as server-sent events, in the order that `openapi/responses/events.py` promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openapi.responses.events import (
    ContentPartEvent,
    OutputItemEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
    ResponseStateEvent,
)
from server.http.sse import named_event
from server.operations.responses.whole import CollectedResponse

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from openapi.errors import ErrorEnvelope
    from openapi.responses.events import ResponseEvent
    from openapi.responses.response import ResponseObject
    from orchestrator import OrchOutput
    from server.operations.responses.plan import ResponsePlan
    from server.operations.responses.stored import StoredResponse
    from server.operations.responses.whole import MessageStatus
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.outputs import Outputs


async def response_events(
    events: ResponseEvents, stored: ExpiringStore[StoredResponse], outputs: Outputs
) -> AsyncGenerator[bytes]:
    """All events of a response. It is stored before the event that completes it.

    The first event waits for the first output. Raises the error of a request that failed.
    """
    is_started = False
    async for output in outputs:
        if not is_started:
            for event in events.start():
                yield event
            is_started = True
        if event := events.feed(output):
            yield event
    for event in events.finish(stored):
        yield event


class ResponseEvents:
    """Turns the outputs of a request into framed events, numbered from 0."""

    def __init__(self, plan: ResponsePlan) -> None:
        self._collected = CollectedResponse(plan)
        self._sequence_number = 0

    def start(self) -> Iterator[bytes]:
        """The events before the first text."""
        initial = self._collected.initial
        yield self._state_event("response.created", initial)
        yield self._state_event("response.in_progress", initial)
        yield self._item_event("response.output_item.added", "in_progress")
        yield self._part_event("response.content_part.added")

    def feed(self, output: OrchOutput) -> bytes:
        """The event for one output; empty if there is none."""
        text, logprobs = self._collected.add(output)
        if not (text or logprobs):
            return b""
        return self._event(
            OutputTextDelta(
                type="response.output_text.delta",
                item_id=self._collected.message_id,
                output_index=0,
                content_index=0,
                delta=text,
                logprobs=logprobs,
                sequence_number=self._sequence_number,
            )
        )

    def finish(self, stored: ExpiringStore[StoredResponse]) -> Iterator[bytes]:
        """The events after the last text. The response is stored first, if it is to be stored."""
        collected = self._collected
        response = collected.finish(stored)
        yield self._event(
            OutputTextDone(
                type="response.output_text.done",
                item_id=collected.message_id,
                output_index=0,
                content_index=0,
                text=collected.text,
                logprobs=collected.logprobs,
                sequence_number=self._sequence_number,
            )
        )
        yield self._part_event("response.content_part.done")
        yield self._item_event("response.output_item.done", collected.status)
        yield self._state_event(f"response.{response.status}", response)

    def failure(self, envelope: ErrorEnvelope) -> bytes:
        """The last event of a response that failed."""
        error = envelope.error
        return self._event(
            ResponseErrorEvent(
                type="error",
                code=error.code,
                message=error.message,
                param=error.param,
                sequence_number=self._sequence_number,
            )
        )

    def _state_event(self, kind: Any, response: ResponseObject) -> bytes:
        number = self._sequence_number
        return self._event(ResponseStateEvent(type=kind, response=response, sequence_number=number))

    def _item_event(self, kind: Any, status: MessageStatus) -> bytes:
        item, number = self._collected.message(status), self._sequence_number
        return self._event(
            OutputItemEvent(type=kind, output_index=0, item=item, sequence_number=number)
        )

    def _part_event(self, kind: Any) -> bytes:
        return self._event(
            ContentPartEvent(
                type=kind,
                item_id=self._collected.message_id,
                output_index=0,
                content_index=0,
                part=self._collected.content(),
                sequence_number=self._sequence_number,
            )
        )

    def _event(self, event: ResponseEvent) -> bytes:
        self._sequence_number += 1
        return named_event(event.type, event.wire())
