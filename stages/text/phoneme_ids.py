"""Maps phonemes to the ids that a Piper voice reads, with the map in the voice's `.onnx.json`.

The order is that of Piper's `phonemes_to_ids`: the start mark, the phonemes and the end mark, with
a pad after the start mark and after each phoneme. A phoneme is one code point of the decomposed
(NFD) string. Phonemes that the voice does not know are left out.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_START, _PAD, _END = "^", "_", "$"


def phoneme_ids(phonemes: str, id_map: Mapping[str, tuple[int, ...]]) -> list[int]:
    """The ids of one piece. Empty if the voice knows none of its phonemes."""
    return ids_and_offsets(unicodedata.normalize("NFD", phonemes), id_map)[0]


def ids_and_offsets(
    phonemes: str, id_map: Mapping[str, tuple[int, ...]]
) -> tuple[list[int], list[int]]:
    """The ids of a piece in NFD, and the index in the ids at which each phoneme begins.

    The indices end with the index after the last phoneme. The ids are empty if the voice knows no
    phoneme with a sound.
    """
    ids = [*id_map[_START], *id_map[_PAD]]
    offsets = []
    has_sound = False
    for phoneme in phonemes:
        offsets.append(len(ids))
        if phoneme in id_map:
            ids += id_map[phoneme] + id_map[_PAD]
            has_sound = has_sound or phoneme.isalnum()
    offsets.append(len(ids))
    return ([*ids, *id_map[_END]], offsets) if has_sound else ([], offsets)
