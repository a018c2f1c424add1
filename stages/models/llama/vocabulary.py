"""Converts text to tokens and tokens to bytes; makes text of tokens one by one.

Control tokens have no bytes. Torch-free.
"""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from tokenizers import Tokenizer

from stages.contract.messages import Candidate

if TYPE_CHECKING:
    from pathlib import Path


class Vocabulary:
    """A byte-level tokenizer (Radford et al. 2019, GPT-2), read from its file."""

    def __init__(self, path: Path) -> None:
        self._tokenizer: Tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.encode_special_tokens = True
        added = self._tokenizer.get_added_tokens_decoder()
        self.control = {token.content: i for i, token in added.items() if token.special}
        self._control_names = {i: name for name, i in self.control.items()}
        byte_of = {character: byte for byte, character in _byte_characters().items()}
        self._bytes = [b""] * self._tokenizer.get_vocab_size()
        for token, i in self._tokenizer.get_vocab(with_added_tokens=False).items():
            if token not in self.control:
                self._bytes[i] = bytes(byte_of[character] for character in token)

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """Plain text → tokens. Text that looks like a control token is encoded as plain text."""
        clean = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates become "?"
        # Only this method lets other threads run meanwhile; a megabyte takes 0.2 s.
        return self._tokenizer.encode_batch_fast([clean], add_special_tokens=False)[0].ids

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token adds to the text."""
        return self._bytes[token]

    def candidate(self, token: int, logprob: float) -> Candidate:
        """A token as clients see it: its bytes, and a name with U+FFFD for a partial character."""
        if token in self._control_names:
            return Candidate(self._control_names[token], None, logprob)
        text_bytes = self._bytes[token]
        return Candidate(text_bytes.decode("utf-8", "replace"), text_bytes, logprob)


class Detokenizer:
    """Tokens in, text out, cut only between characters.

    The first bytes of a character are held back until it is complete, and dropped if it never is.
    Invalid bytes become U+FFFD. All outputs joined are the decoded text of all tokens.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        """Add a token. Returns the text that is complete now, often that of the token itself."""
        return self._decoder.decode(self._vocabulary.token_bytes(token))


def _byte_characters() -> dict[int, str]:
    """The characters that GPT-2 writes for bytes: visible ones unchanged, others from U+0100 up."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {
        **{byte: chr(byte) for byte in visible},
        **{byte: chr(0x100 + n) for n, byte in enumerate(hidden)},
    }
