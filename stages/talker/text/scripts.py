"""Which letters a voice can speak: those of its language's script, and Latin and Greek ones.

What espeak-ng does with others is no speech of the text: an English voice says "Chinese letter" for
each. So they are refused, or reported, before they come to a voice.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from stages.talker.text.traced import Traced

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


def unspeakable(text: Traced, language: str) -> tuple[int, str] | None:
    """Where in the source the first letter is that a voice of `language` (a tag as "en-US") cannot
    speak, and the name of its script, as "Cyrillic"."""
    primary = _primary(language)
    for character, start in zip(text.text, text.starts, strict=True):
        if not character.isascii() and (script := _script(character, primary)):
            return start, script
    return None


@lru_cache(maxsize=4096)
def _script(character: str, language: str) -> str:
    """The script's name where the language does not have it, else ""."""
    same = unicodedata.normalize("NFKC", character)[:1]
    if not same.isalpha():
        return ""
    script = unicodedata.name(same, "unknown").split()[0]
    known = script in _EVERYWHERE or language in _SCRIPTS.get(script, "").split()
    return "" if known else script if script == "CJK" else script.capitalize()


def without_unspeakable(text: Traced, language: str) -> Traced:
    """`text` without the letters that a voice of `language` cannot speak."""
    if unspeakable(text, language) is None:
        return text
    primary = _primary(language)
    kept = [k for k, character in enumerate(text.text) if not _script(character, primary)]
    return Traced(
        "".join(text.text[k] for k in kept),
        tuple(text.starts[k] for k in kept),
        tuple(text.ends[k] for k in kept),
    )


def _primary(language: str) -> str:
    return language.replace("_", "-").split("-")[0].lower()
