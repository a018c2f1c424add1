"""Completions as server-sent events: each is a Completion with a part of one choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from openapi.completions.response import CompletionChoice
from server.http.sse import event
from server.operations.completions.logprobs import LogprobLists
from server.operations.shared.choice_events import choice_events
from server.operations.shared.usage import UsageCounter
from stages.contract.messages import TextChunk
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from openapi.chat.usage import ChatUsage
    from openapi.completions.response import Completion
    from orchestrator import OrchOutput
    from server.operations.completions.plan import CompletionPlan
    from server.serving.outputs import Outputs


def completion_events(
    plan: CompletionPlan, empty: Completion, outputs: Outputs
) -> AsyncGenerator[bytes]:
    """The events of all choices, then the usage if requested, then `[DONE]`.

    `empty` is the reply without choices.
    """
    num_choices = len(plan.requests)
    choices = [CompletionChoiceEvents(plan, empty, index) for index in range(num_choices)]
    usage = UsageCounter(num_choices, plan.num_per_prompt)

    def usage_event() -> bytes:
        return event(empty.model_copy(update={"usage": usage.usage}).wire())

    return choice_events(outputs, choices, usage, usage_event if plan.include_usage else None)


class CompletionChoiceEvents:
    """The events of one choice: the echo of its prompt, its text, and its finish reason."""

    def __init__(self, plan: CompletionPlan, empty: Completion, index: int) -> None:
        self._echo = plan.echoes[index]
        self._empty = empty
        self._index = index
        self._usage: dict[str, ChatUsage | None] = {"usage": None} if plan.include_usage else {}
        self._logprobs = LogprobLists()

    def start(self) -> Iterator[bytes]:
        """The prompt, if the request asks for its echo."""
        if self._echo:
            yield self._event(TextChunk(self._echo))

    def feed(self, output: OrchOutput) -> Iterator[bytes]:
        """The text of one output, with its log probabilities."""
        data = output.data
        if output.role == Role.THINKER and not output.is_end and (data.text or data.scores):
            yield self._event(data)

    def finish(self, finish_reason: str) -> Iterator[bytes]:
        """The finish reason."""
        yield self._event(TextChunk(""), finish_reason)

    def _event(self, chunk: TextChunk, finish_reason: str | None = None) -> bytes:
        choice = CompletionChoice(
            text=chunk.text,
            index=self._index,
            logprobs=self._logprobs.add(chunk.scores),
            finish_reason=cast("Any", finish_reason),
        )
        return event(self._empty.model_copy(update={"choices": [choice], **self._usage}).wire())
