"""Which letters a voice can speak: those of its language's script, and Latin and Greek ones.

What espeak-ng does with others is no speech of the text: an English voice says "Chinese letter" for
each. So they are refused, or reported, before they come to a voice.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from stages.text.traced import Traced

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first word of a letter's Unicode name is its script.
_EVERYWHERE = frozenset(("LATIN", "GREEK", "MICRO", "OHM", "MODIFIER", "FEMININE", "MASCULINE"))
_SCRIPTS = {
    "CYRILLIC": "ru uk bg sr mk be kk ky tt tg mn ba cv",
    "ARABIC": "ar fa ur ku ps sd ug",
    "DEVANAGARI": "hi ne mr sa kok",
    "CJK": "zh cmn yue ja hak",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "KATAKANA-HIRAGANA": "ja",
    "HANGUL": "ko",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "HEBREW": "he yi",
    "BENGALI": "bn as bpy",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "ORIYA": "or",
    "TAMIL": "ta",
    "TELUGU": "te",
    "SINHALA": "si",
    "THAI": "th",
    "LAO": "lo",
    "MYANMAR": "my shn",
    "KHMER": "km",
    "ETHIOPIC": "am ti",
    "CHEROKEE": "chr",
}


def foreign_letters(text: str, language: str) -> Iterator[tuple[int, str]]:
    """Where the letters are that a voice of `language` (a tag as "en-US") cannot speak, each with
    the name of its script, as "Cyrillic"."""
    if text.isascii():
        return
    primary = language.replace("_", "-").split("-")[0].lower()
    for at, character in enumerate(text):
        if script := _script(character, primary):
            yield at, script


def unspeakable(text: Traced, language: str) -> tuple[int, str] | None:
    """The first of them, with its place in the source."""
    for at, script in foreign_letters(text.text, language):
        return text.starts[at], script
    return None


def without_unspeakable(text: Traced, language: str) -> Traced:
    """`text` without them."""
    parts, kept = [], 0
    for at, _ in foreign_letters(text.text, language):
        parts.append(text.cut(kept, at))
        kept = at + 1
    return Traced.joined([*parts, text.cut(kept)]) if parts else text


@lru_cache(maxsize=4096)
def _script(character: str, language: str) -> str:
    """The script's name where the language does not have it, else ""."""
    same = unicodedata.normalize("NFKC", character)[:1]
    if not same.isalpha():
        return ""
    script = unicodedata.name(same, "unknown").split()[0]
    known = script in _EVERYWHERE or language in _SCRIPTS.get(script, "").split()
    return "" if known else script if script == "CJK" else script.capitalize()
