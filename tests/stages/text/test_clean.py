"""Which characters cleaning removes, and which it keeps."""

import pytest

from stages.text.clean import clean_characters, speakable
from stages.text.traced import Traced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello\u0000 wor\u0007ld.", "Hello world."),
        ("a\u00a0b\u200bc\td\r\ne", "a bc d e"),
        ("\u201cIt\u2019s\u201d \u2018so\u2019", "\"It's\" 'so'"),
        ("Hi 😀 there 👍🏽 👩\u200d👩\u200d👧 🇩🇪 1\ufe0f\u20e3", "Hi there 1"),
        ("cafe\u0301 naïve", "café naïve"),
        ("5% of $3, 20°", "5% of $3, 20°"),
        ("", ""),
    ],
)
def test_characters_without_sound_are_removed(text, expected):
    assert clean_characters(Traced.of(text)).text == expected


@pytest.mark.parametrize("text", ["", "  \n\t ", "😀🎉👍", "... !!! ---", "***", "\u200b"])
def test_without_letters_and_digits_nothing_is_speakable(text):
    assert not speakable(text)


@pytest.mark.parametrize("text", ["a", "7", "... é", "日本", "½"])
def test_letters_and_digits_are_speakable(text):
    assert speakable(text)
