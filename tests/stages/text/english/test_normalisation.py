"""Normalised English: a table of cases, offsets into the source, and linear time."""

import time

import pytest

from benchmarks.normalisers import canon, cases
from stages.text.english import normalised
from stages.text.english.numbers import cardinal, number, ordinal, roman, year
from stages.text.traced import Traced

CASES = list(cases())


def read(text):
    return normalised(Traced.of(text)).text


@pytest.mark.parametrize(("kind", "written", "spoken"), CASES, ids=[row[1] for row in CASES])
def test_the_table_is_normalised_correctly(kind, written, spoken):
    assert canon(read(written)) in {canon(reading) for reading in spoken}


def test_the_table_has_enough_cases():
    assert len(CASES) >= 200
    assert len({kind for kind, _, _ in CASES}) >= 15


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        (
            "Dr. Smith paid $3.14 at 12.30 p.m. on Nov. 29th, 2024! OK.",
            (
                "Doctor Smith paid three dollars and fourteen cents at twelve thirty P.M. on "
                "November twenty-ninth, twenty twenty-four! OK."
            ),
        ),
        ('He said: "I\'m 27" and left.', 'He said: "I\'m twenty-seven" and left.'),
        ("Cats, dogs, etc. Then.", "Cats, dogs, etcetera. Then."),
        ("9am-5pm", "nine A.M. to five P.M."),
        ("7-3=4", "seven minus three equals four"),
        ("US$40", "forty dollars"),
        ("an F-16 and 5-year-olds", "an F sixteen and five-year-olds"),
        ("There are 1500 miles, not 2024 people.", None),
        ("It was 1984.", "It was nineteen eighty-four."),
        ("10\u207b\u2076 m", "ten to the power of minus six m"),
    ],
)
def test_in_a_sentence(written, spoken):
    assert read(written) == (
        spoken or "There are one thousand five hundred miles, not two thousand twenty-four people."
    )


def test_number_words():
    assert cardinal(0) == "zero"
    assert cardinal(1_000_001) == "one million one"
    assert cardinal(10**15) == "one" + 15 * " zero"
    assert [ordinal(n) for n in (1, 12, 20, 103)] == [
        "first",
        "twelfth",
        "twentieth",
        "one hundred third",
    ]
    assert [year(y) for y in ("1905", "2000", "2005", "1900")] == [
        "nineteen oh five",
        "two thousand",
        "two thousand five",
        "nineteen hundred",
    ]
    assert [roman(text) for text in ("XIV", "IIX", "MIX", "")] == [14, None, None, None]
    assert number("007") == "zero zero seven"


def test_spoken_words_know_their_place_in_the_source():
    text = normalised(Traced.of("Pay $3.50 to Dr. Lee."))
    sources = {
        word: text.span(at, at + len(word))
        for word in ("Pay", "three", "cents", "Doctor", "Lee")
        for at in [text.text.index(word)]
    }
    assert sources == {
        "Pay": (0, 3),
        "three": (4, 9),
        "cents": (4, 9),
        "Doctor": (13, 16),
        "Lee": (17, 20),
    }


@pytest.mark.parametrize(
    "unit", ["1", "1,", "1.", "-", "1-", "$", "$1", "A.", "I", "1:", "1/", "v1.", "x", " 1", "@a."]
)
def test_time_is_linear(unit):
    """Pieces have at most 180 code points. A longer text shows rules that take quadratic time."""
    text = unit * (4000 // len(unit))
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 3
