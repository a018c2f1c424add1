"""The fake model's tokenizer: each code point is a token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.pipeline import Message


class FakePrompts:
    """Implements `ChatPrompts`. Only the last message is answered; the others only count."""

    context_tokens = 8192
    num_tokens = 0x110000

    def tokenize(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """One NUL for each code point of the earlier messages, then the last message unchanged."""
        earlier = sum(len(message.content) for message in messages[:-1])
        return (0,) * earlier + tuple(map(ord, messages[-1].content))

    def encode(self, text: str) -> tuple[int, ...]:
        """The code points of a text."""
        return tuple(map(ord, text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these code points. A lone surrogate becomes "?"."""
        return "".join(map(chr, tokens)).encode("utf-8", "replace").decode("utf-8")

    def check_schema(self, schema: str) -> None:
        """Accept any JSON object. Raises ValueError for anything else."""
        if not isinstance(json.loads(schema), dict):
            raise ValueError("a schema must be an object")
