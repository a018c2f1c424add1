"""Removes characters that no voice can speak: control and format characters, emoji, extra spaces.

Letters, digits, punctuation and signs with a name (%, $, degrees) stay, because later steps decide
how they are spoken. `markup.py` removes markup, and the rules of the language write out numbers.
"""

from __future__ import annotations

import re
import unicodedata

from stages.text.traced import Traced

_KEPT_SYMBOLS = "\u00b0\u00a9\u00ae\u2122\u2190\u2192"
_QUOTES = dict.fromkeys("\u2018\u2019\u201b", "'") | dict.fromkeys("\u201c\u201d\u201e\u201f", '"')
_SIGNS = {"\u2044": "/", "\u2215": "/", "\u2022": " ", "\u2010": "-", "\u2011": "-", "\u2012": "-"}
_KEYCAP = "\u20e3"
_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
# Variants of a letter that only look different: wide, bold, circled, ligatures, subscripts.
_SAME_LETTER = re.compile(r"<(?:wide|narrow|font|circle|compat|small|sub)> ")
_PLAIN = re.compile(r"[!-~]+(?: [!-~]+)*")
_SPACE_RUN = re.compile(r" {2,}")
_RUN = re.compile(r"([=*_~#+<>^|\u2013\u2014-])\1{2,}")
_EMOTICON = re.compile(r"(?<!\S)(?:[:;=8][-o^']?[)(\]\[DPp|*]|<3)(?=[\s.,!?]|$)")


class _Replacements(dict[str, str]):
    """A cache: a character and its replacement."""

    def __missing__(self, character: str) -> str:
        self[character] = replacement = _replacement(character)
        return replacement


def _replacement(character: str) -> str:
    if found := _QUOTES.get(character) or _SIGNS.get(character):
        return found
    if character in _SPACES:
        return " "
    category = unicodedata.category(character)
    if category[0] == "Z":
        return " "
    if category == "Nd":
        return str(unicodedata.digit(character))
    if category == "So" and character not in _KEPT_SYMBOLS:
        return " "
    variation = "\ufe00" <= character <= "\ufe0f" or character == _KEYCAP
    skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    if category[0] == "C" or variation or skin_tone:
        return ""
    if _SAME_LETTER.match(unicodedata.decomposition(character)):
        same = unicodedata.normalize("NFKC", character)
        return same if same.isalnum() else character
    return unicodedata.normalize("NFC", character)


_replacements = _Replacements()


def clean_characters(text: Traced) -> Traced:
    """Remove what cannot be spoken, also emoticons and runs of decoration ("-----").

    The result is one line in NFC, with single spaces and none at the ends.
    """
    if not _PLAIN.fullmatch(text.text):
        text = _replace_characters(text)
    text = text.sub(_RUN, lambda _: " ").sub(_EMOTICON, lambda _: "")
    return _strip(text.sub(_SPACE_RUN, lambda _: " "))


def _replace_characters(text: Traced) -> Traced:
    """Replace each character, and compose combining characters with the one before."""
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for character, start, end in zip(text.text, text.starts, text.ends, strict=True):
        if out and _is_combining(character):
            pair = unicodedata.normalize("NFC", out[-1] + character)
            if len(pair) == 1:
                out[-1], ends[-1] = pair, end
                continue
        for new in _replacements[character]:
            out.append(new)
            starts.append(start)
            ends.append(end)
    return Traced("".join(out), tuple(starts), tuple(ends))


def _is_combining(character: str) -> bool:
    return unicodedata.combining(character) > 0 or "\u1160" <= character <= "\u11ff"


def _strip(text: Traced) -> Traced:
    begin = len(text.text) - len(text.text.lstrip())
    return text.cut(begin, max(begin, len(text.text.rstrip())))


def speakable(text: str) -> bool:
    """Whether `text` has a letter or a digit. Without one there is nothing to speak."""
    return any(map(str.isalnum, text))
