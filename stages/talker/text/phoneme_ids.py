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
    ids: list[int] = []
    audible = False
    for phoneme in unicodedata.normalize("NFD", phonemes):
        if phoneme in id_map:
            ids += id_map[phoneme] + id_map[_PAD]
            audible = audible or phoneme.isalnum()
    return [*id_map[_START], *id_map[_PAD], *ids, *id_map[_END]] if audible else []
