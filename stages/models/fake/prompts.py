"""The fake model's tokenizer: each code point is a token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from stages.contract.messages import ChatPrompt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Prompt


class FakePrompts:
    """Implements `ChatPrompts`. Only the last message is answered; the others only count.

    Tools and template options change nothing.
    """

    context_tokens = 8192
    num_tokens = 0x110000

    def tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        """The code points of a text. A chat is its last message, with a NUL before it for each code
        point of the earlier messages.
        """
        if isinstance(prompt, ChatPrompt):
            *earlier, last = (message.content for message in prompt.messages)
            return (0,) * sum(map(len, earlier)) + tuple(map(ord, last))
        if isinstance(prompt.content, str):
            return tuple(map(ord, prompt.content))
        return prompt.content

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of these code points. A lone surrogate becomes "?"."""
        return "".join(map(chr, tokens)).encode("utf-8", "replace").decode("utf-8")

    def check_schema(self, schema: str) -> None:
        """Accept any JSON object. Raises ValueError for anything else."""
        if not isinstance(json.loads(schema), dict):
            raise ValueError("a schema must be an object")
