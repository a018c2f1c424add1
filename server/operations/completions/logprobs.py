"""Log probabilities in the older form of `/v1/completions`: parallel lists."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from openapi.completions.response import CompletionLogprobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Candidate, TokenScore


class LogprobLists:
    """Makes the lists of one choice, chunk by chunk. It counts the offset of each token."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_chars = 0

    def add(self, scores: Sequence[TokenScore]) -> CompletionLogprobs | None:
        """The lists of the next tokens; None if there are no scores."""
        if not scores:
            return None
        any_top = any(score.top for score in scores)
        return CompletionLogprobs(
            tokens=[_token_name(score.chosen) for score in scores],
            token_logprobs=[score.chosen.logprob for score in scores],
            top_logprobs=[_top_logprobs(score) for score in scores] if any_top else None,
            text_offset=[self._next_offset(score) for score in scores],
        )

    def _next_offset(self, score: TokenScore) -> int:
        offset = self._num_chars
        self._num_chars += len(self._decoder.decode(score.chosen.text_bytes or b""))
        return offset


def _top_logprobs(score: TokenScore) -> dict[str, float]:
    return {_token_name(candidate): candidate.logprob for candidate in score.top}


def _token_name(candidate: Candidate) -> str:
    """The token's text, or its bytes if it is only a part of a character."""
    text_bytes = candidate.text_bytes
    if text_bytes is None or candidate.name.encode() == text_bytes:
        return candidate.name
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in text_bytes)
