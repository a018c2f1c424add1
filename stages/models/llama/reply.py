"""One reply as it is written: tokens in, chunks of text out, until something ends it.

Torch-free. Counts tokens as OpenAI does: all that were generated, but not the one that ends a turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stages.contract.messages import TextChunk, TokenScore
from stages.models.llama.stop import StopFilter
from stages.models.llama.vocabulary import Detokenizer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stages.models.llama.vocabulary import Vocabulary


class Reply:
    """`finish_reason` is None while it may go on, then `stop` or `length`."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        end_tokens: Collection[int],
        stops: Sequence[str],
        max_tokens: int,
    ) -> None:
        """ValueError for an empty stop string, or for no token at all."""
        if max_tokens < 1:
            raise ValueError(f"max_tokens must be 1 or more, not {max_tokens}")
        self._detokenizer = Detokenizer(vocabulary)
        self._end_tokens = end_tokens
        self._filter = StopFilter(stops)
        self._max_tokens = max_tokens
        self._num_unsent = 0
        self._unsent_scores: list[TokenScore] = []
        self.num_tokens = 0
        self.finish_reason: str | None = None

    def push(self, token: int, score: TokenScore | None = None) -> TextChunk | None:
        """Take the next token; gives what may be shown now, with the tokens since the last."""
        if token in self._end_tokens:
            self.finish_reason = "stop"
            return self._chunk(self._filter.flush())
        self.num_tokens += 1
        self._num_unsent += 1
        if score is not None:
            self._unsent_scores.append(score)
        text = self._filter.push(self._detokenizer.push(token))
        if self._filter.stopped:
            self.finish_reason = "stop"
            self._unsent_scores = _covering(self._unsent_scores, text)
        elif self.num_tokens == self._max_tokens:
            self.finish_reason = "length"
            text += self._filter.flush()
        return self._chunk(text)

    def _chunk(self, text: str) -> TextChunk | None:
        if not (text or (self.finish_reason and self._unsent_scores)):
            return None
        num_tokens, self._num_unsent = self._num_unsent, 0
        scores, self._unsent_scores = tuple(self._unsent_scores), []
        return TextChunk(text, num_tokens, scores)


def _covering(scores: Sequence[TokenScore], text: str) -> list[TokenScore]:
    """The scores of the tokens that have a part in `text`, the beginning of theirs."""
    missing = len(text.encode())
    covering = []
    for score in scores:
        if missing <= 0:
            break
        covering.append(score)
        missing -= len(score.chosen.text_bytes or b"")
    return covering
