"""Scores of tokens as the wire shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.chat.logprobs import ChoiceLogprobs, TokenLogprob, TopLogprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Candidate, TokenScore


def logprobs_of(scores: Sequence[TokenScore]) -> ChoiceLogprobs:
    """The scores of a choice, or of a chunk of it."""
    return ChoiceLogprobs(content=[token_logprob(score) for score in scores], refusal=None)


def token_logprob(score: TokenScore) -> TokenLogprob:
    """One token and the likeliest at its place."""
    chosen = _shown(score.chosen)
    return TokenLogprob(
        token=chosen.token,
        logprob=chosen.logprob,
        bytes=chosen.bytes,
        top_logprobs=[_shown(candidate) for candidate in score.top],
    )


def _shown(candidate: Candidate) -> TopLogprob:
    text_bytes = candidate.text_bytes
    return TopLogprob(
        token=candidate.name,
        logprob=candidate.logprob,
        bytes=None if text_bytes is None else list(text_bytes),
    )
