"""Turns the text of one request into tokens while the text is still being written.

The tokens are the same whether the text comes whole or in pieces. Text is cut only where no token
can cross: before a space or punctuation that follows a letter or a digit. The text after the last
such place waits. Markup is removed as in every talker, and whitespace becomes single spaces.
Torch-free.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from stages.text.markup import Cleaner, Verbatim

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams
    from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
    from stages.text.traced import Traced

_SPACES = re.compile(r"\s+")


class StreamingTokenizer:
    """Call `feed` for each piece of text, then `end` once. Both return tokens that are certain.

    `start` and `end_at` are the span of the source text that was read so far.
    """

    def __init__(self, tokenizer: TextTokenizer, params: TalkerParams) -> None:
        self.start = 0
        self.end_at = 0
        self._tokenizer = tokenizer
        self._cleaner = Cleaner(params.code_announcement) if params.clean else Verbatim()
        self._waiting = ""
        self._begun = False

    def feed(self, text: str) -> list[int]:
        """Add a piece of text."""
        return self._push(self._cleaner.feed(text))

    def end(self) -> list[int]:
        """Finish the text. Returns its last tokens."""
        tokens = self._push(self._cleaner.finish())
        rest, self._waiting = self._waiting.rstrip(), ""
        return tokens + self._tokens(rest)

    def _push(self, cleaned: Traced) -> list[int]:
        self._note_span(cleaned)
        text = _SPACES.sub(" ", self._waiting + cleaned.text)
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        cut = _last_safe_cut(text)
        self._waiting = text[cut:]
        return self._tokens(text[:cut])

    def _tokens(self, text: str) -> list[int]:
        return self._tokenizer.encode(text) if text else []

    def _note_span(self, cleaned: Traced) -> None:
        visible = [i for i, character in enumerate(cleaned.text) if not character.isspace()]
        if visible:
            if not self.end_at:
                self.start = cleaned.starts[visible[0]]
            self.end_at = cleaned.ends[visible[-1]]


def _last_safe_cut(text: str) -> int:
    """The last place that no token crosses, whatever text comes next. 0 if there is none."""
    for index in range(len(text) - 1, 0, -1):
        if text[index - 1].isalnum() and _ends_word(text[index]):
            return index
    return 0


def _ends_word(character: str) -> bool:
    """Whether a word ends before it. Combining marks do not end a word: they belong to it."""
    return unicodedata.category(character)[0] in "ZPS"
