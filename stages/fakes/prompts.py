"""The fake model's tokenizer: a token is a code point."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.pipelines.pipeline import Message


class FakePrompts:
    """See ChatPrompts. The prompt is the last message; the others only count."""

    context_tokens = 8192

    def tokenize(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Earlier messages as one NUL per code point, then the last one as it is."""
        earlier = sum(len(message.content) for message in messages[:-1])
        return (0,) * earlier + tuple(map(ord, messages[-1].content))
