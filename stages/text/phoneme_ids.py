"""Phonemes to the numbers that a Piper voice reads, by the map in its `.onnx.json`.

The order is that of Piper's `phonemes_to_ids`: the start mark, then each phoneme and after each,
the start mark included, a pad; then the end mark. A phoneme is one code point of the decomposed
(NFD) string; those that the voice does not know are left out.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_START, _PAD, _END = "^", "_", "$"


def phoneme_ids(phonemes: str, id_map: Mapping[str, tuple[int, ...]]) -> list[int]:
    """Ids of one piece; empty if the voice knows none of its sounds."""
    return ids_and_places(unicodedata.normalize("NFD", phonemes), id_map)[0]


def ids_and_places(
    phonemes: str, id_map: Mapping[str, tuple[int, ...]]
) -> tuple[list[int], list[int]]:
    """Ids of one piece in NFD; where among them each phoneme begins, and where the last ends."""
    ids = [*id_map[_START], *id_map[_PAD]]
    places = []
    audible = False
    for phoneme in phonemes:
        places.append(len(ids))
        if phoneme in id_map:
            ids += id_map[phoneme] + id_map[_PAD]
            audible = audible or phoneme.isalnum()
    places.append(len(ids))
    return ([*ids, *id_map[_END]], places) if audible else ([], places)
