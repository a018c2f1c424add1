"""What a step of the thinker does: one token for those that write, pieces for those that read.

Torch-free; knows requests only by how much of them is done.
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

# What a token costs, in prompt tokens that have nothing before them, grows with what is before it:
# doubled after so many for a prompt's, whose piece shares what it reads from the cache (m).
_PROMPT_TOKENS = 1000
_WRITE_COST = 1.5  # alone it also is sampled, and reads the cache for itself
_WRITE_TOKENS = 200


@dataclass(slots=True, eq=False)
class Writing:
    """A request: `tokens` is the prompt and what was written, `num_cached` of them are read;
    `num_known` were already when it came."""

    request_id: str
    params: ThinkerParams
    tokens: list[int]
    reply: Reply
    slot: Slot | None = None
    num_cached: int = 0
    last_step: int = 0
    guide: Guide | None = None
    num_known: int = 0

    @property
    def written(self) -> list[int]:
        """The tokens of the reply so far."""
        return self.tokens[len(self.params.prompt) :]

    @property
    def num_unread(self) -> int:
        """How many tokens the model has yet to read; 1 while the reply is written."""
        return len(self.tokens) - self.num_cached


def plan(
    ready: Sequence[Writing], max_batch: int, max_step_tokens: int
) -> list[tuple[Writing, int]]:
    """Which requests advance, those that waited longest first, and by how many tokens each.

    `max_step_tokens` is the work of a step, in prompt tokens that have nothing before them. A
    quarter of it is the prompts' whatever is written at the same time. At least one advances.
    """
    waited = sorted(ready, key=lambda w: w.last_step)[:max_batch]
    parts: list[tuple[Writing, int]] = []
    budget = float(max_step_tokens)
    for w in waited:
        if w.num_unread == 1 and budget > 0:
            budget -= _WRITE_COST + w.num_cached / _WRITE_TOKENS
            parts.append((w, 1))
    prompts = [w for w in waited if w.num_unread > 1]
    return parts + _pieces(prompts, max(budget, max_step_tokens / 4))


def _pieces(prompts: Sequence[Writing], budget: float) -> list[tuple[Writing, int]]:
    """Shares `budget` among prompts, the shortest rest first: it is the soonest to be heard.

    A long prompt does not starve, for the short ones then write, and hold places in the batch.
    """
    parts = []
    for w in sorted(prompts, key=lambda w: w.num_unread):
        if budget <= 0:
            break
        price = 1 + w.num_cached / _PROMPT_TOKENS
        count = min(w.num_unread, max(1, int(budget / price)))
        budget -= count * price
        parts.append((w, count))
    return parts
