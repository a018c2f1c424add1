"""The fake model's tokenizer: a token is a code point."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.pipeline import Message


class FakePrompts:
    """See ChatPrompts. The prompt is the last message; the others only count."""

    context_tokens = 8192
    num_tokens = 0x110000

    def tokenize(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Earlier messages as one NUL per code point, then the last one as it is."""
        earlier = sum(len(message.content) for message in messages[:-1])
        return (0,) * earlier + tuple(map(ord, messages[-1].content))

    def encode(self, text: str) -> tuple[int, ...]:
        """Its code points."""
        return tuple(map(ord, text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The code points; "?" for half of a surrogate pair, which is no text."""
        return "".join(map(chr, tokens)).encode("utf-8", "replace").decode("utf-8")

    def check_schema(self, schema: str) -> None:
        """Takes every JSON object as a schema."""
        if not isinstance(json.loads(schema), dict):
            raise ValueError("a schema must be an object")
