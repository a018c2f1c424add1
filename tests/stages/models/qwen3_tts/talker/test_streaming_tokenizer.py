"""Tokens do not depend on how the text was cut, and the span of the source is tracked."""

import random

import pytest

from stages.contract.messages import TalkerParams
from stages.models.qwen3_tts.talker.streaming_tokenizer import StreamingTokenizer
from stages.models.qwen3_tts.talker.text_tokenizer import TextTokenizer
from tests.qwen3_tts.cases import TEXTS

OTHERS = [
    "Isn't it the other's?  They'll  see, at 10:30 -- or 1,000 times...",
    "One\n\ntwo\tthree \u00a0four",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u518d\u89c1",
]


@pytest.fixture(scope="module")
def tokenizer(checkpoints):
    return TextTokenizer(checkpoints["custom_voice"])


def tokens_of(tokenizer, pieces, **changes):
    text = StreamingTokenizer(tokenizer, TalkerParams("a", 0, **{"clean": False, **changes}))
    fed = [token for piece in pieces for token in text.feed(piece)]
    return fed + text.end(), text


@pytest.mark.parametrize("text", [*TEXTS, *OTHERS])
def test_tokens_do_not_depend_on_the_cuts(text, tokenizer):
    whole = tokenizer.encode(" ".join(text.split()))
    rng = random.Random(text)
    for size in (1, 2, 3, 7, 100):
        pieces, at = [], 0
        while at < len(text):
            step = rng.randint(1, size)
            pieces.append(text[at : at + step])
            at += step
        assert tokens_of(tokenizer, pieces)[0] == whole


def test_a_word_waits_until_it_is_complete(tokenizer):
    text = StreamingTokenizer(tokenizer, TalkerParams("a", 0))
    assert text.feed("The") == []
    assert text.feed("n") == []
    assert text.feed(" the") == tokenizer.encode("Then")
    assert text.feed(" ") == tokenizer.encode(" the")
    assert text.end() == []


def test_the_span_covers_what_is_spoken_of_the_source(tokenizer):
    _, text = tokens_of(tokenizer, ["  **The", " house** ", "\n"], clean=True)
    assert (text.start, text.end_at) == (4, 13)
