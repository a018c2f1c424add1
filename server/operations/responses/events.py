"""A response as it is made: its states, and its events in the order that is promised.

Sends nothing and waits for nothing: outputs in, frames or the finished object out.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, Literal

from openapi.responses.events import (
    ContentPartEvent,
    OutputItemEvent,
    OutputTextDelta,
    OutputTextDone,
    ResponseErrorEvent,
    ResponseStateEvent,
)
from openapi.responses.response import (
    IncompleteDetails,
    InputDetails,
    OutputDetails,
    OutputMessage,
    OutputText,
    ResponseUsage,
)
from server.http.sse import named_event
from server.operations.chat.logprobs import token_logprob
from stages.contract.messages import TextChunk, TextEnd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openapi.chat.logprobs import TokenLogprob
    from openapi.errors import ErrorEnvelope
    from openapi.responses.events import ResponseEvent
    from openapi.responses.response import ResponseObject

    MessageStatus = Literal["in_progress", "completed", "incomplete"]


class ResponseScript:
    """Takes the data of the request's outputs; `finished` is then the response."""

    def __init__(self, begun: ResponseObject) -> None:
        self._begun = begun
        self._message_id = f"msg_{secrets.token_hex(24)}"
        self._text: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._end = TextEnd("stop", 0, 0)
        self._number = 0

    def first(self) -> Iterator[bytes]:
        """Everything before the first text."""
        yield self._state("response.created", self._begun)
        yield self._state("response.in_progress", self._begun)
        yield self._item("response.output_item.added", "in_progress")
        yield self._part("response.content_part.added")

    def take(self, data: Any) -> Iterator[bytes]:
        """What one output becomes."""
        if isinstance(data, TextEnd):
            self._end = data
        elif isinstance(data, TextChunk) and (data.text or data.scores):
            logprobs = [token_logprob(score) for score in data.scores]
            self._text.append(data.text)
            self._logprobs += logprobs
            yield self._frame(
                OutputTextDelta(
                    type="response.output_text.delta",
                    item_id=self._message_id,
                    output_index=0,
                    content_index=0,
                    delta=data.text,
                    logprobs=logprobs,
                    sequence_number=self._number,
                )
            )

    def last(self, finished: ResponseObject) -> Iterator[bytes]:
        """Everything after the last text."""
        yield self._frame(
            OutputTextDone(
                type="response.output_text.done",
                item_id=self._message_id,
                output_index=0,
                content_index=0,
                text=self.text,
                logprobs=self._logprobs,
                sequence_number=self._number,
            )
        )
        yield self._part("response.content_part.done")
        yield self._item("response.output_item.done", self._status)
        yield self._state(f"response.{finished.status}", finished)

    def failure(self, envelope: ErrorEnvelope) -> bytes:
        """The event of a failure."""
        error = envelope.error
        return self._frame(
            ResponseErrorEvent(
                type="error",
                code=error.code,
                message=error.message,
                param=error.param,
                sequence_number=self._number,
            )
        )

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def finished(self) -> ResponseObject:
        """The response once the last output was taken."""
        cut = self._status == "incomplete"
        end = self._end
        usage = ResponseUsage(
            input_tokens=end.prompt_tokens,
            input_tokens_details=InputDetails(
                cached_tokens=end.cached_tokens, cache_write_tokens=0
            ),
            output_tokens=end.completion_tokens,
            output_tokens_details=OutputDetails(reasoning_tokens=0),
            total_tokens=end.prompt_tokens + end.completion_tokens,
        )
        return self._begun.model_copy(
            update={
                "status": self._status,
                "completed_at": None if cut else int(time.time()),
                "incomplete_details": IncompleteDetails(reason="max_output_tokens")
                if cut
                else None,
                "output": [self._message(self._status)],
                "usage": usage,
            }
        )

    @property
    def _status(self) -> MessageStatus:
        return "incomplete" if self._end.finish_reason == "length" else "completed"

    def _content(self) -> OutputText:
        return OutputText(
            type="output_text", text=self.text, annotations=[], logprobs=self._logprobs
        )

    def _message(self, status: MessageStatus) -> OutputMessage:
        return OutputMessage(
            id=self._message_id,
            type="message",
            status=status,
            role="assistant",
            content=[] if status == "in_progress" else [self._content()],
        )

    def _state(self, kind: Any, response: ResponseObject) -> bytes:
        return self._frame(
            ResponseStateEvent(type=kind, response=response, sequence_number=self._number)
        )

    def _item(self, kind: Any, status: MessageStatus) -> bytes:
        item = self._message(status)
        return self._frame(
            OutputItemEvent(type=kind, output_index=0, item=item, sequence_number=self._number)
        )

    def _part(self, kind: Any) -> bytes:
        return self._frame(
            ContentPartEvent(
                type=kind,
                item_id=self._message_id,
                output_index=0,
                content_index=0,
                part=self._content(),
                sequence_number=self._number,
            )
        )

    def _frame(self, event: ResponseEvent) -> bytes:
        self._number += 1
        return named_event(event.type, event.wire())
