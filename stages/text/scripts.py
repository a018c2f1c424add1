"""Which letters a voice can speak: those of its language's scripts, and Latin and Greek letters.

espeak-ng does not speak other letters: an English voice says "Chinese letter" for each of them. The
server therefore refuses or reports them, and no voice gets them.
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
    """Find the letters that a voice of `language` (a tag such as "en-US") cannot speak.

    Yields the index of each letter and the name of its script, such as "Cyrillic".
    """
    if text.isascii():
        return
    primary = language.replace("_", "-").split("-")[0].lower()
    for at, character in enumerate(text):
        if script := _script(character, primary):
            yield at, script


def unspeakable(text: Traced, language: str) -> tuple[int, str] | None:
    """The first letter that a voice of `language` cannot speak, or None.

    Returns its offset in the source and the name of its script.
    """
    for at, script in foreign_letters(text.text, language):
        return text.starts[at], script
    return None


def without_unspeakable(text: Traced, language: str) -> Traced:
    """Remove the letters that a voice of `language` cannot speak."""
    parts, kept = [], 0
    for at, _ in foreign_letters(text.text, language):
        parts.append(text.cut(kept, at))
        kept = at + 1
    return Traced.joined([*parts, text.cut(kept)]) if parts else text


@lru_cache(maxsize=4096)
def _script(character: str, language: str) -> str:
    """The script of a letter that the language does not use. "" for any other character."""
    same = unicodedata.normalize("NFKC", character)[:1]
    if not same.isalpha():
        return ""
    script = unicodedata.name(same, "unknown").split()[0]
    known = script in _EVERYWHERE or language in _SCRIPTS.get(script, "").split()
    return "" if known else script if script == "CJK" else script.capitalize()
