"""Scores of tokens in the older form, as parallel lists."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from openapi.completions.response import CompletionLogprobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stages.contract.messages import Candidate, TokenScore


class LogprobLists:
    """Makes the lists of one choice, piece by piece, and knows how long its text is by then."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._num_chars = 0

    def take(self, scores: Sequence[TokenScore]) -> CompletionLogprobs | None:
        """The lists of the next tokens; None where there are none."""
        if not scores:
            return None
        any_top = any(score.top for score in scores)
        return CompletionLogprobs(
            tokens=[_name(score.chosen) for score in scores],
            token_logprobs=[score.chosen.logprob for score in scores],
            top_logprobs=[_top(score) for score in scores] if any_top else None,
            text_offset=[self._offset(score) for score in scores],
        )

    def _offset(self, score: TokenScore) -> int:
        offset = self._num_chars
        self._num_chars += len(self._decoder.decode(score.chosen.text_bytes or b""))
        return offset


def _top(score: TokenScore) -> dict[str, float]:
    return {_name(candidate): candidate.logprob for candidate in score.top}


def _name(candidate: Candidate) -> str:
    text_bytes = candidate.text_bytes
    if text_bytes is None or candidate.name.encode() == text_bytes:
        return candidate.name
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in text_bytes)
