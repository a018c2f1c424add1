"""espeak-ng, the phonemizer that Piper's voices were trained with. An optional extra (GPL-3.0).

The package `espeakng_loader` contains the shared library. This module calls its C interface
(`speak_lib.h`) directly, because the existing Python wrapper loads 20 MB of packages that are not
needed here. The library keeps its state in globals. A process therefore has one instance, behind a
lock, and one language at a time.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from threading import Lock
from typing import ClassVar

_lock = Lock()
_LANGUAGE_FLAG = re.compile(r"\([^)]+\)")  # marks words of another language, such as "(fr)"
# Constants of speak_lib.h.
_SYNCHRONOUS = 2  # do not play audio
_DONT_EXIT = 0x8000  # return an error if the data is missing
_UTF8 = 1
_IPA = 2


class _Voice(ctypes.Structure):
    """The first fields of an `espeak_VOICE`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),  # one byte of priority, then the first language
        ("identifier", ctypes.c_char_p),
    )


class _Library:
    """The functions of the library that are used here. Not thread-safe."""

    def __init__(self) -> None:
        import espeakng_loader

        self._c = ctypes.CDLL(espeakng_loader.get_library_path())
        self._c.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._c.espeak_TextToPhonemes.restype = ctypes.c_char_p
        data = espeakng_loader.get_data_path().encode()
        if self._c.espeak_Initialize(_SYNCHRONOUS, 0, data, _DONT_EXIT) <= 0:
            raise OSError(f"espeak-ng cannot start with the data folder {data!r}")
        self._voices: dict[str, bytes] = {}
        for voice in self._c.espeak_ListVoices(None):
            if not voice:
                break  # the list ends with a null pointer
            language = voice.contents.languages[1:].decode()
            self._voices.setdefault(
                language, voice.contents.identifier
            )  # the list begins with the best voice of a language

    def set_language(self, language: str) -> None:
        """Choose the language of later calls. ValueError if espeak-ng does not speak it."""
        voice = self._voices.get(language)
        if voice is None or self._c.espeak_SetVoiceByName(voice) != 0:
            raise ValueError(f"espeak-ng does not speak {language!r}")

    def phonemes(self, text: str) -> str:
        """The text in IPA, with spaces between words and between espeak's own clauses."""
        rest = ctypes.c_char_p(text.encode())
        clauses = []
        while rest.value is not None:
            clause = self._c.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
            clauses.append((clause or b"").decode())
        return " ".join(clauses)


@cache
def _library() -> _Library:
    return _Library()


class EspeakPhonemizer:
    """Speaks any language of espeak-ng; 0.1 ms per clause. ValueError for an unknown language."""

    # The library's current language. Setting it takes longer than phonemizing a clause.
    _current_language: ClassVar[str] = ""

    def __init__(self, language: str) -> None:
        self._language = language
        self.clause("a")  # fail now if the language is unknown

    def clause(self, text: str) -> str:
        """Return the IPA of a clause. espeak's own clause breaks become spaces."""
        with _lock:
            library = _library()
            if EspeakPhonemizer._current_language != self._language:
                library.set_language(self._language)
                EspeakPhonemizer._current_language = self._language
            ipa = library.phonemes(text)
        return " ".join(_LANGUAGE_FLAG.sub("", ipa).split())
