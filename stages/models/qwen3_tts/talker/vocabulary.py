"""The text tokenizer of a Qwen checkpoint, from `tokenizer.json` or from the files it is made of.

Byte-level pairs (Radford et al. 2019, GPT-2) on composed text (NFC), cut as Qwen2 cuts. Torch-free.
What looks like a control
token in a text is text like any other. Torch-free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from stages.contract.errors import CheckpointError
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from pathlib import Path

# Contractions, words with at most one sign before them, digits one by one, signs, spaces.
_CUTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TextVocabulary:
    """Text to tokens."""

    def __init__(self, folder: Path) -> None:
        """Raises CheckpointError where the files are missing or do not fit together."""
        try:
            self._tokenizer = _read(folder)
        except CheckpointError:
            raise
        except Exception as error:  # the library raises nothing more exact
            raise CheckpointError(f"{folder} has no tokenizer that can be read: {error}") from error
        self._tokenizer.encode_special_tokens = True

    def encode(self, text: str) -> list[int]:
        """The tokens of a plain text."""
        clean = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates become "?"
        return list(self._tokenizer.encode_batch_fast([clean], add_special_tokens=False)[0].ids)


def _read(folder: Path) -> Tokenizer:
    if (folder / "tokenizer.json").is_file():
        return Tokenizer.from_file(str(folder / "tokenizer.json"))
    vocabulary, merges = models.BPE.read_file(
        str(folder / "vocab.json"), str(folder / "merges.txt")
    )
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CUTS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    added = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder", {})
    for _, token in sorted(added.items(), key=lambda item: int(item[0])):
        tokenizer.add_tokens(
            [AddedToken(token["content"], special=token["special"], normalized=False)]
        )
    return tokenizer
