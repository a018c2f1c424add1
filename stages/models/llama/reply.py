"""One reply as it is generated: tokens in, chunks of text out, until something ends it.

It counts tokens as OpenAI does: all generated tokens except the one that ends the turn. Torch-free.
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
    """A reply in progress. `finish_reason` is None until its end, then `stop` or `length`."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        end_tokens: Collection[int],
        stops: Sequence[str],
        max_tokens: int,
    ) -> None:
        """Raises ValueError for an empty stop string, and for `max_tokens` below 1."""
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
        """Add the next token. Returns the text that may be sent now, if there is any.

        The chunk counts, and has the scores of, all tokens since the last chunk.
        """
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
            self._unsent_scores = _scores_of_prefix(self._unsent_scores, text)
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


def _scores_of_prefix(scores: Sequence[TokenScore], text: str) -> list[TokenScore]:
    """The scores of the tokens that have a part in `text`, a prefix of the text of all tokens."""
    num_bytes_left = len(text.encode())
    found = []
    for score in scores:
        if num_bytes_left <= 0:
            break
        found.append(score)
        num_bytes_left -= len(score.chosen.text_bytes or b"")
    return found
