"""The choices of one call as one stream of events.

Choices are first seen in the order of their index. The first event waits for the first output,
nothing of a choice's end is sent before its terminal, and the usage and `[DONE]` come once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from server.http.sse import DONE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

    from server.operations.shared.usage import Tally
    from server.serving.outputs import Outputs


class Script(Protocol):
    """The chunks of one choice."""

    def first(self) -> Iterator[bytes]:
        """What comes before everything."""

    def take(self, data: Any) -> Iterator[bytes]:
        """What one output becomes."""

    def last(self, finish_reason: str) -> Iterator[bytes]:
        """What is left when the last output was taken, and the end itself."""


async def choice_frames(
    outputs: Outputs,
    scripts: Sequence[Script],
    tally: Tally,
    usage_frame: Callable[[], bytes] | None,
) -> AsyncGenerator[bytes]:
    """All frames of a reply. Raises the error of a request in the place of an end."""
    num_begun = 0
    async for output in outputs.of_group():
        for script in scripts[num_begun : output.index + 1]:
            for frame in script.first():
                yield frame
        num_begun = max(num_begun, output.index + 1)
        tally.note(output)
        script = scripts[output.index]
        for frame in script.take(output.data):
            yield frame
        if output.finished:
            for frame in script.last(tally.finish_reason(output.index)):
                yield frame
    if usage_frame is not None:
        yield usage_frame()
    yield DONE
