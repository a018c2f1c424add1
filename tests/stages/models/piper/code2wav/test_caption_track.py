"""Captions: in order, within the sound, and for the right words of the source."""

from itertools import pairwise

import numpy as np
import pytest

from stages.contract.messages import (
    OUTPUT_RATE_HZ,
    Caption,
    Code2WavParams,
    TextChunk,
    TextSpan,
)
from stages.models.piper.caption_track import CaptionTrack
from stages.models.piper.settings import PiperSettings
from tests.stages.credit import CREDIT
from tests.stages.models.parameters import talker_params

TEXT = (
    "Hello **there**, my friend. It cost $3.50 on the [first day](http://x.y)!\n"
    "- Red and blue\n- Dr. Smith was here at 12.30 p.m. on Nov. 29th, 2024."
)
WORDS = "Hello there my friend It cost $3.50 on the first day Red and blue Dr. Smith was here at"


def test_words_are_given_once_and_pieces_while_they_sound():
    track = CaptionTrack(scale=2.0)
    piece = TextSpan(0, 9, 0, 4)
    track.add(Caption(piece, (TextSpan(0, 4, 0, 2), TextSpan(5, 9, 2, 4))), at=10, hop=5)
    track.add(Caption(TextSpan(10, 12, 0, 1), ()), at=40, hop=5)
    heard = [track.until(samples) for samples in (20, 21, 41, 60, 80, 90, 100)]
    first, second = TextSpan(0, 9, 20, 60), TextSpan(10, 12, 80, 90)
    assert heard == [
        (),
        (Caption(first, (TextSpan(0, 4, 20, 40),)),),
        (Caption(first, (TextSpan(5, 9, 40, 60),)),),
        (Caption(first),),
        (),
        (Caption(second),),
        (),
    ]


@pytest.fixture(scope="module")
def chunks_of(talker, code2wav):
    """Run a request through both stages; its audio chunks."""

    def run(text, **params):
        talker.open(
            "c", talker_params(PiperSettings, "joe", **({"seed": 3, "captions": True} | params))
        )
        talker.feed("c", TextChunk(text))
        talker.end_input("c")
        code2wav.open("c", Code2WavParams("joe"))
        audio, ended, done = [], False, False
        while not done:
            while not ended and code2wav.wants_chunk("c"):
                for emit in talker.step({"c": CREDIT}):
                    if emit.chunk is not None:
                        code2wav.feed("c", emit.chunk)
                    else:
                        ended = True
                        code2wav.end_input("c")
            for emit in code2wav.step({"c": CREDIT}) if code2wav.ready("c", CREDIT) else ():
                done = emit.end is not None
                if not done:
                    audio.append(emit.chunk)
        talker.close("c")
        code2wav.close("c")
        return audio

    return run


@pytest.mark.model
@pytest.mark.parametrize("params", [{}, {"speed": 1.7}, {"sentence_silence": 1.0}])
def test_captions_are_in_order_within_the_sound_and_of_the_right_words(chunks_of, params):
    audio = chunks_of(TEXT, **params)
    num_samples = sum(len(chunk.samples) for chunk in audio)
    captions = [caption for chunk in audio for caption in chunk.captions]
    pieces = list(dict.fromkeys(caption.piece for caption in captions))
    words = [word for caption in captions for word in caption.words]
    assert " ".join(TEXT[word.start : word.end] for word in words).startswith(WORDS)
    assert TEXT[words[-1].start : words[-1].end] == "Nov. 29th, 2024"
    for marks in (pieces, words):
        for before, after in pairwise(marks):
            assert before.end <= after.start
            assert before.heard_to <= after.heard_from
        assert all(mark.heard_from < mark.heard_to for mark in marks)
    assert pieces[0].heard_from == 0
    assert pieces[-1].heard_to <= num_samples
    assert num_samples - pieces[-1].heard_to < 10
    assert [TEXT[p.start : p.end] for p in pieces][1:3] == [
        "It cost $3.50 on the [first day](http://x.y)!",
        "Red and blue",
    ]


@pytest.mark.model
def test_each_chunk_has_the_captions_of_its_sound(chunks_of):
    at = 0
    for chunk in chunks_of(TEXT):
        end = at + len(chunk.samples)
        for caption in chunk.captions:
            assert caption.piece.heard_from < end
            assert caption.piece.heard_to > at
            assert all(at <= word.heard_from < end for word in caption.words)
        silent = np.abs(chunk.samples).max() < 100
        assert chunk.captions or silent
        at = end


@pytest.mark.model
def test_words_are_heard_at_the_times_of_their_captions(chunks_of, recognise):
    """The sound between the first and the last of some words is recognised as these words."""
    text = "The birch canoe slid on the smooth planks. Rice is often served in round bowls."
    audio = chunks_of(text)
    samples = np.concatenate([chunk.samples for chunk in audio])
    words = [word for chunk in audio for caption in chunk.captions for word in caption.words]
    by_text = {text[word.start : word.end]: word for word in words}
    pad = np.zeros(OUTPUT_RATE_HZ // 2, np.int16)
    cut = samples[by_text["served"].heard_from : by_text["bowls"].heard_to]
    heard = recognise(np.concatenate([pad, cut, pad])).lower()
    assert "round" in heard
    assert "rice" not in heard


@pytest.mark.model
def test_without_captions_the_sound_is_the_same(chunks_of):
    with_them, without = chunks_of(TEXT), chunks_of(TEXT, captions=False)
    assert not any(chunk.captions for chunk in without)
    assert np.array_equal(*(np.concatenate([c.samples for c in a]) for a in (with_them, without)))


@pytest.mark.model
@pytest.mark.parametrize("text", ["Red\nBlue\nGreen", "- Apples\n- Pears\n- Plums"])
def test_there_is_a_pause_for_each_line(chunks_of, text):
    samples = np.concatenate([chunk.samples for chunk in chunks_of(text, captions=False)])
    assert (np.diff(loud_s(samples)) > 0.3).sum() == 2


@pytest.mark.model
def test_the_longest_pause_is_where_the_sentence_ends(chunks_of):
    audio = chunks_of("Dr. Smith paid $3.14 at 12.30 p.m. on Nov. 29th, 2024! OK.")
    pieces = {caption.piece for chunk in audio for caption in chunk.captions}
    _, second = sorted(pieces, key=lambda piece: piece.heard_from)
    loud = loud_s(np.concatenate([chunk.samples for chunk in audio]))
    at = loud[np.diff(loud).argmax() + 1]
    assert 0 <= at - second.heard_from / OUTPUT_RATE_HZ < 0.3


def loud_s(samples):
    return np.flatnonzero(np.abs(samples) > 600) / OUTPUT_RATE_HZ


@pytest.mark.model
def test_silence_after_a_sentence_can_be_set(chunks_of):
    def seconds(silence_s):
        audio = chunks_of("Red\nBlue\nGreen", sentence_silence=silence_s)
        return sum(len(chunk.samples) for chunk in audio) / OUTPUT_RATE_HZ

    assert seconds(1.0) - seconds(0.0) == pytest.approx(2.0, abs=0.001)


@pytest.mark.model
def test_a_longer_length_scale_takes_longer(chunks_of):
    def num_samples(**params):
        return sum(len(chunk.samples) for chunk in chunks_of("Hello there.", noise_w=0.0, **params))

    assert num_samples(length_scale=2.0) > 1.6 * num_samples(length_scale=1.0)
