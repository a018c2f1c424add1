"""Constrains a reply to a JSON schema: says which tokens may come next, as the text grows.

llguidance (Microsoft, MIT) does the work; a mask takes about 7 µs for 49,152 tokens. Torch-free, so
that the server can refuse a schema before a request starts.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from llguidance import LLMatcher, LLTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

_NUM_TRIED_BYTES = 64
# Small models write white space without end if they may. This is enough for an indented line.
_WHITE_SPACE = r"[ \n]{0,16}"


def check_schema(schema: str) -> None:
    """Raise ValueError for a schema that is invalid, not supported, or allows no text.

    It writes some bytes with a vocabulary of bytes (made once, 5 ms), because a pattern can be too
    large for the engine, which fails only as the text grows.
    """
    guide = _guide(_byte_tokenizer(), schema)
    for _ in range(_NUM_TRIED_BYTES):
        allowed = np.flatnonzero(guide.allowed()[:256])
        if not len(allowed):
            return  # the JSON is complete
        visible = allowed[allowed > ord(" ")]
        guide.push(int((visible if len(visible) else allowed)[0]))


class Grammars:
    """Makes the guides of replies for one vocabulary."""

    def __init__(self, tokenizer: Path, end_tokens: Iterable[int]) -> None:
        """Read the tokenizer's file. This takes 0.3 s and 50 MiB for 49,152 tokens."""
        self._tokenizer = LLTokenizer(str(tokenizer), eos_token=sorted(end_tokens))

    def guide(self, schema: str) -> Guide:
        """A guide for one reply. Raises ValueError as `check_schema` does."""
        return _guide(self._tokenizer, schema)


def _guide(tokenizer: LLTokenizer, schema: str) -> Guide:
    if not isinstance(json.loads(schema), dict):
        raise ValueError("a JSON schema must be an object")
    grammar = LLMatcher.grammar_from_json_schema(
        schema, defaults={"whitespace_pattern": _WHITE_SPACE}
    )
    matcher = LLMatcher(tokenizer, grammar, log_level=0)
    _raise_error(matcher)
    return Guide(matcher, tokenizer.vocab_size)


@cache
def _byte_tokenizer() -> LLTokenizer:
    return LLTokenizer("byte")


def _raise_error(matcher: LLMatcher) -> None:
    if matcher.is_error():
        raise ValueError(matcher.get_error().splitlines()[0])


class Guide:
    """Says what may come next in one reply: after complete JSON, only the end of the turn."""

    def __init__(self, matcher: LLMatcher, num_tokens: int) -> None:
        self._matcher = matcher
        self._num_tokens = num_tokens

    def allowed(self) -> NDArray[np.bool_]:
        """Which tokens may come next, [vocabulary]."""
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        _raise_error(self._matcher)
        return np.unpackbits(mask, count=self._num_tokens, bitorder="little").view(np.bool_)

    def push(self, token: int) -> None:
        """Add the next token. Raises ValueError if it was not allowed."""
        if not self._matcher.consume_token(token):
            _raise_error(self._matcher)
            raise ValueError(f"the schema does not allow token {token} here")
