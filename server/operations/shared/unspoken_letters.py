"""Counts the letters of a reply that its voice cannot speak, for the field `unspoken`."""

from __future__ import annotations

from openapi.speaking_style import Unspoken
from stages.text.scripts import foreign_letters


class UnspokenLetters:
    """Reads a reply part by part. `language` is that of the voice."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._num_chars = 0
        self._num_letters = 0
        self._first = 0
        self._scripts: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Count the next part of the reply."""
        for position, script in foreign_letters(text, self._language):
            if not self._num_letters:
                self._first = self._num_chars + position
            self._num_letters += 1
            self._scripts[script] = None
        self._num_chars += len(text)

    @property
    def report(self) -> Unspoken | None:
        """The letters so far; None if the voice can speak all of them."""
        if not self._num_letters:
            return None
        return Unspoken(
            letters=self._num_letters, first=self._first, scripts=", ".join(self._scripts)
        )
