"""The text tokenizer of a Qwen checkpoint: `tokenizer.json`, or `vocab.json` and `merges.txt`.

Byte-level byte pairs (Radford et al. 2019, GPT-2) on NFC text, split as Qwen2 does. Text that looks
like a control token is tokenized like any other text. Torch-free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from stages.contract.errors import CheckpointError
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from pathlib import Path

# Contractions, words with at most one symbol before them, single digits, symbols, spaces.
_SPLITS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class TextTokenizer:
    """Turns whole texts into tokens."""

    def __init__(self, folder: Path) -> None:
        """Read the files. Raises CheckpointError if they are missing or do not fit together."""
        try:
            self._tokenizer = _read(folder)
        except CheckpointError:
            raise
        except Exception as error:  # the library raises no narrower type
            raise CheckpointError(f"the tokenizer in {folder} cannot be read: {error}") from error
        self._tokenizer.encode_special_tokens = True

    def encode(self, text: str) -> list[int]:
        """The tokens of a text."""
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
            pre_tokenizers.Split(Regex(_SPLITS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    added = read_json(folder / "tokenizer_config.json").get("added_tokens_decoder", {})
    for _, token in sorted(added.items(), key=lambda item: int(item[0])):
        tokenizer.add_tokens(
            [AddedToken(token["content"], special=token["special"], normalized=False)]
        )
    return tokenizer
