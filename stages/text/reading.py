"""How one voice reads a piece of text: normalised, phonemized, and mapped to phoneme ids.

Each word knows its phoneme ids and its place in the source, so that captions can be timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.english import normalised
from stages.text.phoneme_ids import ids_and_offsets
from stages.text.phonemizer import Phonemizer, Sounds, sounds_of
from stages.text.scripts import without_unspeakable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.text.traced import Traced


@dataclass(frozen=True, slots=True)
class PhraseWord:
    """A spoken word. `start` and `end` are offsets in the source.

    `first_id` and `stop_id` are the index of its first phoneme id and the index after its last one.
    """

    start: int
    end: int
    first_id: int
    stop_id: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """Phoneme ids that are encoded at once: those of a piece of text, or of a part of one.

    `start` and `end` are offsets in the source.
    """

    ids: list[int]
    start: int
    end: int
    words: tuple[PhraseWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads text for one voice. `language` is a BCP 47 tag. `id_map` maps phonemes to ids."""

    language: str
    phonemizer: Phonemizer
    id_map: Mapping[str, tuple[int, ...]]

    def read(self, text: Traced, *, words: bool) -> list[Phrase]:
        """The phrases of a cleaned piece of text. Empty if the voice knows none of its phonemes.

        Letters that the voice cannot speak are left out. `words` asks for the words of each phrase.
        """
        text = without_unspeakable(text, self.language)
        if self.language.lower().startswith("en"):
            text = normalised(text)
        if not text.text:
            return []
        phrases = []
        parts = sounds_of(text, self.phonemizer, words=words)
        for sounds in parts:
            ids, offsets = ids_and_offsets(sounds.text, self.id_map)
            if ids:
                phrase_words = _words(offsets, sounds)
                span = text.span(0, len(text.text))
                if len(parts) > 1 and phrase_words:
                    span = phrase_words[0].start, phrase_words[-1].end
                phrases.append(Phrase(ids, *span, phrase_words))
        return phrases


def _words(offsets: list[int], sounds: Sounds) -> tuple[PhraseWord, ...]:
    """The words of a phrase. Spoken words of the same source ("three dollars", $3) become one."""
    words: list[PhraseWord] = []
    for word in sounds.words:
        first_id, stop_id = offsets[word.first], offsets[word.stop]
        if words and word.start < words[-1].end:
            before = words.pop()
            start, end = min(before.start, word.start), max(before.end, word.end)
            words.append(PhraseWord(start, end, before.first_id, stop_id))
        else:
            words.append(PhraseWord(word.start, word.end, first_id, stop_id))
    return tuple(words)
