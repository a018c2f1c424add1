"""espeak-ng, the phonemizer that Piper's voices were trained with. An optional extra (GPL-3.0).

`espeakng_loader` brings the library, whose C interface (`speak_lib.h`) is called directly: the
Python wrapper that there is loads 20 MB of other packages for what is not used here. The library
keeps its state in globals, so that a process has one, behind a lock, and one language at a time.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from threading import Lock
from typing import ClassVar

_lock = Lock()
_LANGUAGE_FLAG = re.compile(r"\([^)]+\)")  # around words of another language, as in "(fr)"
_SYNCHRONOUS = 2  # nothing is played
_DONT_EXIT = 0x8000  # where its data is not there
_UTF8 = 1
_IPA = 2


class _Voice(ctypes.Structure):
    """The head of an `espeak_VOICE`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_char_p),  # a byte for the priority, then the first language
        ("identifier", ctypes.c_char_p),
    )


class _Library:
    """What is used of it."""

    def __init__(self) -> None:
        import espeakng_loader

        self._c = ctypes.CDLL(espeakng_loader.get_library_path())
        self._c.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self._c.espeak_TextToPhonemes.restype = ctypes.c_char_p
        data = espeakng_loader.get_data_path().encode()
        if self._c.espeak_Initialize(_SYNCHRONOUS, 0, data, _DONT_EXIT) <= 0:
            raise OSError(f"espeak-ng does not start with {data!r}")
        self._voices: dict[str, bytes] = {}
        for voice in self._c.espeak_ListVoices(None):
            if not voice:
                break  # the list ends with a null pointer
            language = voice.contents.languages[1:].decode()
            self._voices.setdefault(language, voice.contents.identifier)  # the best comes first

    def set_language(self, language: str) -> None:
        """Raises ValueError for one that it does not speak."""
        voice = self._voices.get(language)
        if voice is None or self._c.espeak_SetVoiceByName(voice) != 0:
            raise ValueError(f"espeak-ng does not speak {language!r}")

    def phonemes(self, text: str) -> str:
        """In IPA, with a space between words and between the clauses that it finds."""
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
                library.set_language(self._language)
                EspeakPhonemizer._set_to = self._language
            sounds = library.phonemes(text)
        return " ".join(_LANGUAGE_FLAG.sub("", sounds).split())
