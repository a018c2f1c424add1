"""The response object: collected from the outputs of its request, and sent when it is complete."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

from openapi.responses.response import (
    IncompleteDetails,
    InputDetails,
    OutputDetails,
    OutputMessage,
    OutputText,
    ResponseUsage,
)
from server.operations.responses.stored import store_response
from server.operations.shared.ids import new_id
from server.operations.shared.logprobs import token_logprob
from stages.contract.messages import Message, TextEnd
from stages.contract.roles import Role

if TYPE_CHECKING:
    from openapi.chat.logprobs import TokenLogprob
    from openapi.responses.response import ResponseObject
    from orchestrator import OrchOutput
    from server.operations.responses.plan import ResponsePlan
    from server.operations.responses.stored import StoredResponse
    from server.operations.shared.expiring_store import ExpiringStore
    from server.serving.outputs import Outputs

MessageStatus = Literal["in_progress", "completed", "incomplete"]


async def whole_response(
    plan: ResponsePlan, stored: ExpiringStore[StoredResponse], outputs: Outputs
) -> ResponseObject:
    """The body, once all outputs were read; it is then stored. Raises the request's error."""
    collected = CollectedResponse(plan)
    async for output in outputs:
        collected.add(output)
    return collected.finish(stored)


class CollectedResponse:
    """What the outputs of a request add up to so far: one message with one text."""

    def __init__(self, plan: ResponsePlan) -> None:
        self.initial = plan.initial
        self.message_id = new_id("msg_", 24)
        self.logprobs: list[TokenLogprob] = []
        self._turns = plan.turns
        self._texts: list[str] = []
        self._end = TextEnd("stop", 0, 0)

    def add(self, output: OrchOutput) -> tuple[str, list[TokenLogprob]]:
        """Add one output. Returns its text, and the log probabilities of its tokens."""
        data = output.data
        if output.role != Role.THINKER:
            return "", []
        if output.is_end:
            self._end = data
            return "", []
        logprobs = [token_logprob(score) for score in data.scores]
        self._texts.append(data.text)
        self.logprobs += logprobs
        return data.text, logprobs

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._texts)

    @property
    def status(self) -> Literal["completed", "incomplete"]:
        """The status after the last output."""
        return "incomplete" if self._end.finish_reason == "length" else "completed"

    def content(self) -> OutputText:
        """The content part so far."""
        return OutputText(
            type="output_text", text=self.text, annotations=[], logprobs=self.logprobs
        )

    def message(self, status: MessageStatus) -> OutputMessage:
        """The message in this status. While it is in progress it has no content."""
        return OutputMessage(
            id=self.message_id,
            type="message",
            status=status,
            role="assistant",
            content=[] if status == "in_progress" else [self.content()],
        )

    def finish(self, stored: ExpiringStore[StoredResponse]) -> ResponseObject:
        """The response after the last output. If the request wants it stored, it now is."""
        is_cut = self.status == "incomplete"
        response = self.initial.model_copy(
            update={
                "status": self.status,
                "completed_at": None if is_cut else int(time.time()),
                "incomplete_details": IncompleteDetails(reason="max_output_tokens")
                if is_cut
                else None,
                "output": [self.message(self.status)],
                "usage": _usage(self._end),
            }
        )
        if response.store:
            store_response(stored, response, (*self._turns, Message("assistant", self.text)))
        return response


def _usage(end: TextEnd) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=end.prompt_tokens,
        input_tokens_details=InputDetails(cached_tokens=end.cached_tokens, cache_write_tokens=0),
        output_tokens=end.completion_tokens,
        output_tokens_details=OutputDetails(reasoning_tokens=0),
        total_tokens=end.prompt_tokens + end.completion_tokens,
    )
