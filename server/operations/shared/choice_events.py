"""Merges the events of all choices of one call into one stream.

Choices start in the order of their index. The first event waits for the first output. The last
events of a choice wait for its terminal. The usage and `[DONE]` are sent once, at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from server.http.sse import DONE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from orchestrator import OrchOutput
    from server.operations.shared.usage import UsageCounter
    from server.serving.outputs import Outputs


class ChoiceEvents(Protocol):
    """Turns the outputs of one choice into framed events."""

    def start(self) -> Iterator[bytes]:
        """The events before the first output."""

    def feed(self, output: OrchOutput) -> Iterator[bytes]:
        """The events for one output."""

    def finish(self, finish_reason: str) -> Iterator[bytes]:
        """The events after the last output, the one with `finish_reason` last."""


async def choice_events(
    outputs: Outputs,
    choices: Sequence[ChoiceEvents],
    usage: UsageCounter,
    usage_event: Callable[[], bytes] | None,
) -> AsyncGenerator[bytes]:
    """All events of a reply. Raises the error of a request that failed.

    `usage` counts the outputs. `usage_event` makes the event with the usage, if it was requested.
    """
    num_started = 0
    async for output in outputs:
        for choice in choices[num_started : output.index + 1]:
            for event in choice.start():
                yield event
        num_started = max(num_started, output.index + 1)
        usage.add(output)
        choice = choices[output.index]
        for event in choice.feed(output):
            yield event
        if output.finished:
            for event in choice.finish(usage.finish_reason(output.index)):
                yield event
    if usage_event is not None:
        yield usage_event()
    yield DONE
