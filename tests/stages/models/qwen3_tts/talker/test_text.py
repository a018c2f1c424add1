"""The text's stream: tokens that do not depend on how it was cut, and what it stands for."""

import random

import pytest

from stages.contract.messages import TalkerParams
from stages.models.qwen3_tts.talker.text import SpeechText
from stages.models.qwen3_tts.talker.vocabulary import TextVocabulary
from tests.qwen3_tts.cases import TEXTS

OTHERS = [
    "Isn't it the other's?  They'll  see, at 10:30 -- or 1,000 times...",
    "One\n\ntwo\tthree \u00a0four",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u518d\u89c1",
]


@pytest.fixture(scope="module")
def vocabulary(checkpoints):
    return TextVocabulary(checkpoints["custom_voice"])


def tokens_of(vocabulary, pieces, **changes):
    text = SpeechText(vocabulary, TalkerParams("a", 0, **{"clean": False, **changes}))
    fed = [token for piece in pieces for token in text.feed(piece)]
    return fed + text.end(), text


@pytest.mark.parametrize("text", [*TEXTS, *OTHERS])
def test_tokens_are_those_of_the_whole_however_it_was_cut(text, vocabulary):
    whole = vocabulary.encode(" ".join(text.split()))
    chance = random.Random(text)
    for size in (1, 2, 3, 7, 100):
        pieces, at = [], 0
        while at < len(text):
            step = chance.randint(1, size)
            pieces.append(text[at : at + step])
            at += step
        assert tokens_of(vocabulary, pieces)[0] == whole


def test_a_word_waits_until_it_is_complete(vocabulary):
    text = SpeechText(vocabulary, TalkerParams("a", 0))
    assert text.feed("The") == []
    assert text.feed("n") == []
    assert text.feed(" the") == vocabulary.encode("Then")
    assert text.feed(" ") == vocabulary.encode(" the")
    assert text.end() == []


def test_what_is_spoken_stands_for_a_part_of_the_source(vocabulary):
    _, text = tokens_of(vocabulary, ["  **The", " house** ", "\n"], clean=True)
    assert (text.start, text.end_at) == (4, 13)
