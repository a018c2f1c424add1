"""Log probabilities of tokens as the chat and the responses API show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi.chat.logprobs import ChoiceLogprobs, TokenLogprob, TopLogprob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Candidate, TokenScore


def logprobs_of(scores: Sequence[TokenScore]) -> ChoiceLogprobs:
    """The log probabilities of a choice, or of one chunk of it."""
    return ChoiceLogprobs(content=[token_logprob(score) for score in scores], refusal=None)


def token_logprob(score: TokenScore) -> TokenLogprob:
    """One token, and the likeliest tokens at its position."""
    chosen = _top_logprob(score.chosen)
    return TokenLogprob(
        token=chosen.token,
        logprob=chosen.logprob,
        bytes=chosen.bytes,
        top_logprobs=[_top_logprob(candidate) for candidate in score.top],
    )


def _top_logprob(candidate: Candidate) -> TopLogprob:
    text_bytes = candidate.text_bytes
    return TopLogprob(
        token=candidate.name,
        logprob=candidate.logprob,
        bytes=None if text_bytes is None else list(text_bytes),
    )
