"""Plans a step of the thinker: one token of each reply, and pieces of prompts (chunked prefill).

It knows of a request only how many of its tokens are read. Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import ThinkerParams
    from stages.kernels.kv_cache import Slot
    from stages.models.llama.grammar import Guide
    from stages.models.llama.reply import Reply

# The cost of a token grows with the number of tokens before it (measured). The unit is a prompt
# token without any before it. The cost of a prompt's token has doubled after this many tokens; the
# tokens of a piece share what they read from the cache.
_PROMPT_DOUBLING = 1000
_REPLY_COST = 1.5  # a token of a reply is also sampled
_REPLY_UNIT = 200  # it costs one more for each of this many tokens, as it alone reads the cache


@dataclass(slots=True, eq=False)
class ThinkerRequest:
    """The state of a request.

    `tokens` are those of the prompt, `num_prompt` in all, and of the reply. The first `num_cached`
    of them are in the cache; `num_reused` of these came from the prefix cache.
    """

    request_id: str
    params: ThinkerParams
    tokens: list[int]
    reply: Reply
    slot: Slot | None = None
    num_cached: int = 0
    last_step: int = 0
    guide: Guide | None = None
    num_reused: int = 0
    num_prompt: int = 0

    @property
    def written(self) -> list[int]:
        """The tokens of the reply so far."""
        return self.tokens[self.num_prompt :]

    @property
    def num_unread(self) -> int:
        """How many tokens the model has not read; 1 while the reply is written."""
        return len(self.tokens) - self.num_cached


def plan(
    ready: Sequence[ThinkerRequest], max_batch: int, max_step_tokens: int
) -> list[tuple[ThinkerRequest, int]]:
    """Which requests advance, and by how many tokens each. Those that waited longest come first.

    `max_step_tokens` is the budget of a step, in prompt tokens without any before them. A quarter
    of it is reserved for prompts. At least one request advances.
    """
    waited = sorted(ready, key=lambda request: request.last_step)[:max_batch]
    parts: list[tuple[ThinkerRequest, int]] = []
    budget = float(max_step_tokens)
    for request in waited:
        if request.num_unread == 1 and budget > 0:
            budget -= _REPLY_COST + request.num_cached / _REPLY_UNIT
            parts.append((request, 1))
    prompts = [request for request in waited if request.num_unread > 1]
    return parts + _pieces(prompts, max(budget, max_step_tokens / 4))


def _pieces(prompts: Sequence[ThinkerRequest], budget: float) -> list[tuple[ThinkerRequest, int]]:
    """Share `budget` among prompts. The one with the least left to read comes first, because its
    reply can be heard soonest.

    A long prompt does not starve: short ones soon become replies, which hold places in the batch.
    """
    parts = []
    for request in sorted(prompts, key=lambda request: request.num_unread):
        if budget <= 0:
            break
        price = 1 + request.num_cached / _PROMPT_DOUBLING
        count = min(request.num_unread, max(1, int(budget / price)))
        budget -= count * price
        parts.append((request, count))
    return parts
