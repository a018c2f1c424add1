"""The text of one speech as tokens, while it is still being written.

Tokens of a text in pieces are those of the whole: a piece is cut where no token can cross, before a
space or a sign that follows a letter or a digit, and what comes after the last such place waits.
Markup is taken out as for every talker; what is left is one line with single spaces. Torch-free.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from stages.text.markup import Cleaner, Verbatim

if TYPE_CHECKING:
    from stages.contract.messages import TalkerParams
    from stages.models.qwen3_tts.talker.vocabulary import TextVocabulary
    from stages.text.traced import Traced

_SPACES = re.compile(r"\s+")


class SpeechText:
    """Takes the text by `feed`, then `end` once; each returns the tokens that are now certain.

    What was said so far stands for `start` to `end_at` of the source.
    """

    def __init__(self, vocabulary: TextVocabulary, params: TalkerParams) -> None:
        self.start = 0
        self.end_at = 0
        self._vocabulary = vocabulary
        self._cleaner = Cleaner(params.code_announcement) if params.clean else Verbatim()
        self._held = ""
        self._begun = False

    def feed(self, text: str) -> list[int]:
        """More of the text."""
        return self._take(self._cleaner.feed(text))

    def end(self) -> list[int]:
        """The rest."""
        tokens = self._take(self._cleaner.finish())
        rest, self._held = self._held.rstrip(), ""
        return tokens + self._tokens(rest)

    def _take(self, said: Traced) -> list[int]:
        self._note_span(said)
        text = _SPACES.sub(" ", self._held + said.text)
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        cut = _last_cut(text)
        self._held = text[cut:]
        return self._tokens(text[:cut])

    def _tokens(self, text: str) -> list[int]:
        return self._vocabulary.encode(text) if text else []

    def _note_span(self, said: Traced) -> None:
        spoken = [i for i, character in enumerate(said.text) if not character.isspace()]
        if spoken:
            if not self.end_at:
                self.start = said.starts[spoken[0]]
            self.end_at = said.ends[spoken[-1]]


def _last_cut(text: str) -> int:
    """The last place that no token crosses, whatever is written next; 0 where there is none."""
    for at in range(len(text) - 1, 0, -1):
        if text[at - 1].isalnum() and _parts(text[at]):
            return at
    return 0


def _parts(character: str) -> bool:
    """Whether a word ends before it. Marks do not count: they join what they follow."""
    return unicodedata.category(character)[0] in "ZPS"
