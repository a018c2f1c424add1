"""Takes out of a text what no voice can say: control and format characters, emoji, odd spaces.

Letters, digits, marks of punctuation and the signs that have names (%, $, degrees) stay, so that
the phonemizer decides how they sound. Markup and the spelling out of numbers are not this file's.
"""

from __future__ import annotations

import unicodedata

_KEPT_SYMBOLS = "°©®™"
_QUOTES = dict.fromkeys("\u2018\u2019\u201b", "'") | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
_KEYCAP = "\u20e3"
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"


class _Replacements(dict[int, str]):
    """Code point to what stands for it, filled as characters are met."""

    def __missing__(self, code_point: int) -> str:
        self[code_point] = replacement = _replacement(chr(code_point))
        return replacement


def _replacement(character: str) -> str:
    if character in _QUOTES:
        return _QUOTES[character]
    if character in _SPACES:
        return " "
    category = unicodedata.category(character)
    if category[0] == "Z":
        return " "
    if category == "So" and character not in _KEPT_SYMBOLS:
        return " "
    variation = "\ufe00" <= character <= "\ufe0f" or character == _KEYCAP
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return "" if category[0] == "C" or variation or skin_tone else character


_replacements = _Replacements()


def spoken(text: str) -> str:
    """`text` as a phonemizer gets it: one line, composed (NFC), single spaces, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text.translate(_replacements)).split())


def speakable(text: str) -> bool:
    """Whether a letter or a digit is in `text`; without one there is nothing to speak."""
    return any(map(str.isalnum, text))
