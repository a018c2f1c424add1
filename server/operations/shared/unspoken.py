"""What of a reply no voice of its language can speak: counted as it is written, reported once."""

from __future__ import annotations

from openapi.speaking_style import Unspoken
from stages.text.scripts import foreign_letters


class UnspokenLetters:
    """Takes a reply in parts; `language` is the voice's."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._num_read = 0
        self._num_letters = 0
        self._first = 0
        self._scripts: dict[str, None] = {}

    def note(self, text: str) -> None:
        """The next part."""
        for at, script in foreign_letters(text, self._language):
            if not self._num_letters:
                self._first = self._num_read + at
            self._num_letters += 1
            self._scripts[script] = None
        self._num_read += len(text)

    @property
    def report(self) -> Unspoken | None:
        """What was left out; None where everything could be spoken."""
        if not self._num_letters:
            return None
        return Unspoken(
            letters=self._num_letters, first=self._first, scripts=", ".join(self._scripts)
        )
