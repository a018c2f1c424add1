"""The events of a streamed response. `event:` repeats the type, and events are numbered.

Order: created, in_progress, output_item.added, content_part.added, output_text.delta (any number),
output_text.done, content_part.done, output_item.done, completed or incomplete. A failure replaces
the remaining events with one error event. There is no `[DONE]`.
"""

from typing import Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import TokenLogprob
from openapi.responses.response import OutputMessage, OutputText, ResponseObject


class ResponseEvent(ResponseModel):
    """The fields of all events. Numbers start at 0 and have no gaps."""

    type: str
    sequence_number: int

    def wire(self) -> bytes:
        """The JSON body, with every field."""
        return self.model_dump_json().encode()


class ResponseStateEvent(ResponseEvent):
    """The response in its current state."""

    type: Literal[
        "response.created", "response.in_progress", "response.completed", "response.incomplete"
    ]
    response: ResponseObject


class OutputItemEvent(ResponseEvent):
    """The message in its current state."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: int
    item: OutputMessage


class ContentPartEvent(ResponseEvent):
    """The content part in its current state."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    item_id: str
    output_index: int
    content_index: int
    part: OutputText


class OutputTextDelta(ResponseEvent):
    """A part of the text."""

    type: Literal["response.output_text.delta"]
    item_id: str
    output_index: int
    content_index: int
    delta: str
    logprobs: list[TokenLogprob]


class OutputTextDone(ResponseEvent):
    """The whole text."""

    type: Literal["response.output_text.done"]
    item_id: str
    output_index: int
    content_index: int
    text: str
    logprobs: list[TokenLogprob]


class ResponseErrorEvent(ResponseEvent):
    """The failure of a stream that had started. The server then closes the connection."""

    type: Literal["error"]
    code: str | None
    message: str
    param: str | None
