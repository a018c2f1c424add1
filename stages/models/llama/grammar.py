"""Keeps a reply to a JSON schema: which tokens may come next, as the text grows.

llguidance (Microsoft, MIT) does the work; a mask takes about 7 microseconds at 49,152 tokens.
Torch-free, so that the server can refuse a schema before anything starts.
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

# Small models write white space for ever where they may; this is enough for an indented line.
_TRIED_BYTES = 64
_WHITE_SPACE = r"[ \n]{0,16}"


def check_schema(schema: str) -> None:
    """ValueError where a JSON schema is none, uses what is not supported, or lets nothing through.

    Tried on a vocabulary of bytes (5 ms to make, once), and for some bytes: a pattern can be too
    large for the engine, which shows only as the text grows.
    """
    guide = _guide(_bytes_alone(), schema)
    for _ in range(_TRIED_BYTES):
        allowed = np.flatnonzero(guide.allowed()[:256])
        if not len(allowed):
            return  # the JSON is complete
        printed = allowed[allowed > ord(" ")]
        guide.push(int((printed if len(printed) else allowed)[0]))


class Grammars:
    """Makes guides for one vocabulary."""

    def __init__(self, tokenizer: Path, end_tokens: Iterable[int]) -> None:
        """Reads the tokenizer's file: 0.3 s and 50 MiB at 49,152 tokens."""
        self._tokenizer = LLTokenizer(str(tokenizer), eos_token=sorted(end_tokens))

    def guide(self, schema: str) -> Guide:
        """A guide for one reply; ValueError as `check_schema`."""
        return _guide(self._tokenizer, schema)


def _guide(tokenizer: LLTokenizer, schema: str) -> Guide:
    if not isinstance(json.loads(schema), dict):
        raise ValueError("a schema must be an object")
    grammar = LLMatcher.grammar_from_json_schema(
        schema, defaults={"whitespace_pattern": _WHITE_SPACE}
    )
    matcher = LLMatcher(tokenizer, grammar, log_level=0)
    _raise_error(matcher)
    return Guide(matcher, tokenizer.vocab_size)


@cache
def _bytes_alone() -> LLTokenizer:
    return LLTokenizer("byte")


def _raise_error(matcher: LLMatcher) -> None:
    if matcher.is_error():
        raise ValueError(matcher.get_error().splitlines()[0])


class Guide:
    """What may come next in one reply. Once the JSON is complete, only its end."""

    def __init__(self, matcher: LLMatcher, num_tokens: int) -> None:
        self._matcher = matcher
        self._num_tokens = num_tokens

    def allowed(self) -> NDArray[np.bool_]:
        """[vocabulary]: which tokens may be next."""
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        _raise_error(self._matcher)
        return np.unpackbits(mask, count=self._num_tokens, bitorder="little").view(np.bool_)

    def push(self, token: int) -> None:
        """Take a token that was allowed; ValueError for another one."""
        if not self._matcher.consume_token(token):
            _raise_error(self._matcher)
            raise ValueError(f"token {token} does not fit the schema")
