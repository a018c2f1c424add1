"""espeak-ng, the phonemizer that Piper's voices were trained with. An optional extra (GPL-3.0).

The library is found by `espeakng_loader` and called through `phonemizer`'s wrapper. It keeps its
state in globals, so that a process has one, behind a lock, and one language at a time.
"""

from __future__ import annotations

import re
from functools import cache
from threading import Lock
from typing import Any, ClassVar

_lock = Lock()
_LANGUAGE_FLAG = re.compile(r"\([^)]+\)")  # around words of another language, as in "(fr)"


@cache
def _library() -> Any:
    import espeakng_loader
    from phonemizer.backend.espeak.wrapper import EspeakWrapper

    EspeakWrapper.set_library(espeakng_loader.get_library_path())
    EspeakWrapper.set_data_path(espeakng_loader.get_data_path())
    return EspeakWrapper()


class EspeakPhonemizer:
    """Any language that espeak-ng has; 0.1 ms per clause."""

    _set_to: ClassVar[str] = ""  # the library's language; setting it takes longer than a clause

    def __init__(self, language: str) -> None:
        self._language = language
        self.clause("a")

    def clause(self, text: str) -> str:
        """See `Phonemizer`. espeak's own clause breaks inside `text` become spaces."""
        with _lock:
            library = _library()
            if EspeakPhonemizer._set_to != self._language:
                library.set_voice(self._language)
                EspeakPhonemizer._set_to = self._language
            sounds: str = library.text_to_phonemes(text)
        return " ".join(_LANGUAGE_FLAG.sub("", sounds.replace("_", "")).split())
