"""How one voice reads a piece of text: written out, phonemized, as ids that know their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.text.english import normalised
from stages.text.phoneme_ids import ids_and_places
from stages.text.phonemizer import Phonemizer, Sounds, sounds_of
from stages.text.scripts import without_unspeakable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stages.text.traced import Traced


@dataclass(frozen=True, slots=True)
class ReadWord:
    """`start` to `end` of the source are spoken by the ids `first` to `last`."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """What is encoded at once: a piece, or a part of one. `start` to `end` of the source."""

    ids: list[int]
    start: int
    end: int
    words: tuple[ReadWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads for one voice. `language` is a BCP 47 tag."""

    language: str
    phonemizer: Phonemizer
    id_map: Mapping[str, tuple[int, ...]]

    def read(self, said: Traced, *, words: bool) -> list[Phrase]:
        """The phrases of a piece; none where the voice knows none of its sounds."""
        said = without_unspeakable(said, self.language)
        if self.language.lower().startswith("en"):
            said = normalised(said)
        if not said.text:
            return []
        phrases = []
        parts = sounds_of(said, self.phonemizer, words=words)
        for sounds in parts:
            ids, places = ids_and_places(sounds.text, self.id_map)
            if ids:
                spoken = _words(places, sounds)
                span = said.span(0, len(said.text))
                if len(parts) > 1 and spoken:
                    span = spoken[0].start, spoken[-1].end
                phrases.append(Phrase(ids, *span, spoken))
        return phrases


def _words(places: list[int], sounds: Sounds) -> tuple[ReadWord, ...]:
    """Spoken words that stand for the same of the source ("three dollars") are one."""
    words: list[ReadWord] = []
    for word in sounds.words:
        first, last = places[word.begin], places[word.stop]
        if words and word.start < words[-1].end:
            before = words.pop()
            start, end = min(before.start, word.start), max(before.end, word.end)
            words.append(ReadWord(start, end, before.first, last))
        else:
            words.append(ReadWord(word.start, word.end, first, last))
    return tuple(words)
