"""Markup is removed, words stay, and the result does not depend on how the text is fed."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.text.markup import Cleaner, Verbatim, cleaned
from stages.text.traced import Traced

PARTS = [
    *"ab 1.\n*_~`[]()!<>&|#hw-+=\\:^",
    *("http://", "www.", "```", "~~~", "**", "[x](", "](u)", "<b>", "&amp;", "- ", "# ", "word"),
    *("| ", "<!--", "-->", "[^1]", "- [x] ", "\n\n", "a@b.co"),
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# Heading\n\nSome **bold** and *it*.", "Heading\n\nSome bold and it."),
        ("`code_x` ~~old~~ __init__ snake_case", "code x old init snake case"),
        ("- one\n* two\n  + three\n\u2022 four", "one\ntwo\nthree\nfour"),
        ("1. first\n2. second", "1. first\n2. second"),
        ("> quoted **x**\n>> twice", "quoted x\ntwice"),
        ("- [ ] todo\n- [x] done", " todo\n done"),
        ("See [the docs](https://a.b/c_(d)?x=1).", "See the docs."),
        ("![a cat](cat.png) [![badge](b.svg)](https://x.y)", "a cat badge"),
        ("[text][ref] and [1] and note[^2].", "text and 1 and note."),
        ("Go to https://www.example.com/path?q=1. Then on.", "Go to example.com. Then on."),
        ("(see http://localhost:8000/v1)", "(see localhost)"),
        ("<https://x.org> and www.foo.com, ok", "x.org and foo.com, ok"),
        ("```python\nprint('x')\n```\nAfter.", "Code block.\nAfter."),
        ("~~~\nnever closed\n", "Code block.\n"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |\n", " a , b \n 1 , 2 \n"),
        ("***\nText\n====\n---\n", "Text\n"),
        ("a &lt; b &amp; c&nbsp;d", "a < b & c\u00a0d"),
        ("<b>bold</b><br>line<!-- gone -->", "bold\nline"),
        ("a<!-- <b> - -- -->b<!---->c <!-- open", "abc <!-- open"),
        ("what a half-hour: hTtp, ftw, h\\*", "what a half-hour: hTtp, ftw, h*"),
        ("2 * 3, 2*3, a < b, 5 > 4 & ~7", "2 * 3, 2*3, a < b, 5 > 4 & ~7"),
        ("Wow! #1 C# F# x[0]", "Wow! #1 C# F# x 0"),
        ("\\*stars\\*", "*stars*"),
        ("open **bold and [link", "open bold and link"),
        ("who was here, with her", "who was here, with her"),
    ],
)
def test_markup_is_removed_and_words_stay(source, expected):
    assert cleaned(source, "Code block.").text == expected


def test_code_is_left_out_if_the_announcement_is_empty():
    assert cleaned("Look:\n```\nx = 1\n```\nSo.", "").text == "Look:\nSo."


@given(TEXTS)
def test_the_result_does_not_depend_on_how_the_text_is_fed(text):
    cleaner = Cleaner("Code.")
    parts = [cleaner.feed(character) for character in text]
    assert Traced.joined([*parts, cleaner.finish()]) == cleaned(text, "Code.")
    assert cleaner.num_read == len(text)


@given(TEXTS)
def test_offsets_ascend_and_unchanged_letters_point_at_themselves(text):
    clean = cleaned(text, "")
    assert list(clean.starts) == sorted(clean.starts)
    for character, start, end in zip(clean.text, clean.starts, clean.ends, strict=True):
        assert 0 <= start < end <= len(text)
        if end == start + 1 and character.isalnum():
            assert text[start] == character


@given(st.text(alphabet="abc 12.,;'\n", max_size=200))
def test_no_word_of_plain_prose_is_lost(text):
    def words(prose):
        return [word for word in prose.split() if any(map(str.isalnum, word))]

    assert words(cleaned(text, "").text) == words(text)


def test_words_are_returned_before_their_sentence_is_complete():
    cleaner = Cleaner("")
    assert cleaner.feed("**Bold** and [a link").text == "Bold and a link"
    assert cleaner.feed("](http://x.y) more").text == " more"


def test_verbatim_returns_the_text_unchanged():
    verbatim = Verbatim()
    assert verbatim.feed("**a**") == Traced.of("**a**")
    assert verbatim.feed("b").starts == (5,)
    assert verbatim.finish() == Traced()


@pytest.mark.parametrize(
    "unit",
    ["1", "*", "[", "](", "<a", "&", "| ", "```", " ", "#", "\\", "<!--", "[^", "a\n", "> ", "w"],
)
def test_time_is_linear(unit):
    text = unit * (20_000 // len(unit))
    began = time.process_time()
    cleaned(text, "")
    cleaner = Cleaner("")
    for character in text:
        cleaner.feed(character)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("run", ["> ", ".", "-", ":", " ", "\u00a0", "\t"])
def test_a_run_longer_than_the_limit_is_cut_alike_however_it_is_fed(run):
    text = run * 700 + "a"
    whole, bit_by_bit = Cleaner(""), Cleaner("")
    parts = [bit_by_bit.feed(text[at : at + 7]) for at in range(0, len(text), 7)]
    together = whole.feed(text).text + whole.finish().text
    assert "".join(part.text for part in parts) + bit_by_bit.finish().text == together
