"""Keeps a reply to a JSON schema: which tokens may come next, as the text grows.

llguidance (Microsoft, MIT) does the work; a mask takes about 7 microseconds at 49,152 tokens.
Torch-free, so that the server can refuse a schema before anything starts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
from llguidance import LLMatcher, LLTokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

# Small models write white space for ever where they may; this is enough for an indented line.
_WHITE_SPACE = r"[ \n]{0,16}"


def grammar_of(schema: str) -> str:
    """The grammar of a JSON schema; ValueError where it is none, or uses what is not supported."""
    if not isinstance(json.loads(schema), dict):
        raise ValueError("a schema must be an object")
    grammar = LLMatcher.grammar_from_json_schema(
        schema, defaults={"whitespace_pattern": _WHITE_SPACE}
    )
    message = LLMatcher.validate_grammar(grammar)
    if message and not message.startswith("WARNING"):
        raise ValueError(message.splitlines()[0])
    return grammar


class Grammars:
    """Makes guides for one vocabulary."""

    def __init__(self, tokenizer: Path, end_tokens: Iterable[int]) -> None:
        """Reads the tokenizer's file: 0.3 s at 49,152 tokens."""
        self._tokenizer = LLTokenizer(str(tokenizer), eos_token=sorted(end_tokens))

    def guide(self, schema: str) -> Guide:
        """A guide for one reply; ValueError as `grammar_of`."""
        matcher = LLMatcher(self._tokenizer, grammar_of(schema), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error().splitlines()[0])
        return Guide(matcher, self._tokenizer.vocab_size)


class Guide:
    """What may come next in one reply. Once the JSON is complete, only its end."""

    def __init__(self, matcher: LLMatcher, num_tokens: int) -> None:
        self._matcher = matcher
        self._num_tokens = num_tokens

    def allowed(self) -> NDArray[np.bool_]:
        """[vocabulary]: which tokens may be next."""
        mask = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error().splitlines()[0])
        return np.unpackbits(mask, count=self._num_tokens, bitorder="little").view(np.bool_)

    def push(self, token: int) -> None:
        """Take a token that was allowed; ValueError for another one."""
        if not self._matcher.consume_token(token):
            raise ValueError(f"token {token} does not fit the schema")
