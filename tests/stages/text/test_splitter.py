"""Pieces tile the text, do not depend on how it is fed, and end where a reader would pause."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.text.clean import speakable
from stages.text.markup import Cleaner, Verbatim
from stages.text.splitter import SENTENCE_PAUSE_S, Splitter

MARKS = "Dr. p.m. 3.14 and, so; Yes! no? - \u2014 I. \u201cIt.\u201d ... 1,000 😀 (so) Nov. 29"
WORDS = st.sampled_from([*MARKS.split(), "Hello", "the", "\n", "  ", "x" * 70])
TEXTS = st.one_of(
    st.lists(WORDS, max_size=60).map(" ".join),
    st.lists(WORDS, max_size=60).map("".join),
    st.text(max_size=300),
)


def pieces_of(*parts):
    splitter = Splitter(Verbatim())
    return [piece for part in parts for piece in splitter.feed(part)] + splitter.finish()


def texts_of(*parts):
    return [piece.text for piece in pieces_of(*parts)]


@given(TEXTS)
def test_pieces_tile_the_text(text):
    pieces = pieces_of(text)
    edges = [0, *(piece.end for piece in pieces)]
    assert [piece.start for piece in pieces] == edges[:-1]
    assert edges[-1] == len(text)
    assert all(piece.start < piece.end <= piece.start + 180 for piece in pieces)
    for piece in pieces:
        assert bool(piece.text) == speakable(text[piece.start : piece.end])


@given(TEXTS, st.data())
def test_pieces_do_not_depend_on_how_the_text_is_fed(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    edges = [0, *cuts, len(text)]
    parts = [text[a:b] for a, b in pairwise(edges)]
    assert pieces_of(*parts) == pieces_of(text) == pieces_of(*text)


@given(TEXTS, st.data())
def test_cleaned_pieces_tile_the_source_and_do_not_depend_on_how_it_is_fed(text, data):
    at = data.draw(st.integers(0, len(text)))
    whole, parts = cleaned_pieces(text), cleaned_pieces(text[:at], text[at:])
    assert whole == parts == cleaned_pieces(*text)
    edges = [0, *(piece.end for piece in whole)]
    assert [piece.start for piece in whole] == edges[:-1]
    assert edges[-1] == len(text)
    for piece in whole:
        assert all(piece.start <= s < e <= piece.end for s, e in spans_of(piece.spoken))


def cleaned_pieces(*parts):
    splitter = Splitter(Cleaner("Code."))
    return [piece for part in parts for piece in splitter.feed(part)] + splitter.finish()


def spans_of(spoken):
    return zip(spoken.starts, spoken.ends, strict=True)


@given(st.lists(WORDS, max_size=60).map("".join))
def test_no_word_is_lost_or_repeated(text):
    spoken = "".join(piece.text for piece in pieces_of(text))
    assert "".join(filter(str.isalnum, spoken)) == "".join(filter(str.isalnum, text))


def test_a_dot_in_a_number_a_title_or_a_date_ends_nothing():
    text = "Dr. Smith paid $3.14 at 12.30 p.m. on Nov. 29th, 2024! OK."
    assert texts_of(text) == [text[:54], "OK."]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("He met J. R. Smith in the U.S. Army.", 1),
        ("It closed at 5 p.m. Then we left.", 2),
        ("Tea, milk, etc. is here. Good.", 2),
        ("So do I. You too.", 2),
        ("1. First\n2. Second", 2),
        ("\u201cReally?\u201d he said. \u201cYes.\u201d", 2),
        ("See example.com or v1.2.3 now. Bye.", 2),
        ("I said no. Then we left.", 2),
        ("See no. 5 and fig. 3 on p. 12 now.", 1),
        ("It is in Rm. 12 and Apt. 5 now.", 1),
        ("They all said that Warner Bros. made it on Park Ln. in June.", 1),
        ("We live on Park Ln. They do not.", 2),
        ("J. R. R. Tolkien wrote it.", 1),
        ("(He left early.) She stayed [all day.] Good.", 3),
        ("She said, \u2018Stop.\u2019 Then he did.", 2),
        ("\u4f60\u597d\u3002\u518d\u89c1\u3002", 2),
        ("\u0646\u0639\u0645\u061f \u0644\u0627", 2),
    ],
)
def test_sentence_ends_are_distinguished_from_abbreviations(text, count):
    assert len(pieces_of(text)) == count


def test_each_line_is_followed_by_a_pause():
    pieces = pieces_of("Red\nBlue\n\nGreen")
    assert [(piece.text, piece.pause_s) for piece in pieces] == [
        ("Red", SENTENCE_PAUSE_S),
        ("Blue", SENTENCE_PAUSE_S),
        ("Green", 0.0),
    ]


def test_the_first_piece_is_a_short_clause():
    first, second = texts_of("Hello there, my friend, how are you today, and how is she?")
    assert first == "Hello there, my friend,"
    assert second == "how are you today, and how is she?"


def test_a_long_first_phrase_is_cut_between_words():
    text = "The quick brown fox jumps over the lazy dog while the band plays on and on"
    first, second = pieces_of(text)
    assert first.text == text[: first.end].strip()
    assert first.end <= 60
    assert first.pause_s == 0
    assert second.start == first.end


def test_a_long_sentence_is_cut_at_a_clause():
    pieces = pieces_of("So. " + "Word " * 20 + "here, and " + "word " * 20)
    assert pieces[1].text.endswith("here,")


def test_pieces_are_returned_before_the_text_is_complete():
    splitter = Splitter(Verbatim())
    assert splitter.feed("Good morning to you.") == []
    assert [piece.text for piece in splitter.feed(" It")] == ["Good morning to you."]


def test_text_without_letters_joins_the_next_piece():
    assert texts_of("... *** Hello. 😀 Bye. 😀") == ["... Hello.", "Bye.", ""]


@pytest.mark.parametrize(
    "text", ["a" * 20_000, "1" * 20_000, " " * 20_000, "- " * 10_000, "\n" * 9]
)
def test_a_long_run_is_cut_into_bounded_pieces(text):
    pieces = pieces_of(*(text[at : at + 50] for at in range(0, len(text), 50)))
    assert pieces[-1].end == len(text)
    assert max(piece.end - piece.start for piece in pieces) <= 180


@pytest.mark.parametrize("mark", [".", ",", ";"])
def test_a_mark_that_ends_exactly_with_a_full_window_ends_a_piece(mark):
    """The first window holds 60 characters, later ones 180; the space after it is the next's."""
    first, later = "a" * 59 + mark, " " + "b" * 178 + mark
    pieces = pieces_of(first + later * 5)
    assert [piece.end - piece.start for piece in pieces] == [60] + [180] * 5
    assert [piece.text for piece in pieces] == [first, *[later.strip()] * 5]
