"""Which characters cleaning removes, and which it keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def test_a_combining_mark_without_a_composed_form_stays_a_code_point_of_its_own():
    cleaned = clean_characters(Traced.of("x\u0301e\u0301\u0301y"))
    assert cleaned.text == "x\u0301\u00e9\u0301y"
    assert cleaned.starts == (0, 1, 2, 4, 5)
    assert cleaned.ends == (1, 2, 4, 5, 6)


@given(st.text("aex \u0301\u0308\u0327\u1100\u1161\u11a8\ufb01\u200b\U0001f600"))
def test_each_code_point_of_a_cleaned_text_has_its_place_in_the_source(text):
    cleaned = clean_characters(Traced.of(text))
    assert len(cleaned.text) == len(cleaned.starts) == len(cleaned.ends)
    assert list(cleaned.starts) == sorted(cleaned.starts)
    for start, end in zip(cleaned.starts, cleaned.ends, strict=True):
        assert 0 <= start < end <= len(text)
