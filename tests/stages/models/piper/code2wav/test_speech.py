"""Text to sound through both stages: understood, the same every time, without seams."""

import re

import numpy as np
import pytest

from benchmarks.read_back import num_errors
from stages.models.piper.settings import PiperSettings
from tests.stages.models.parameters import talker_params

pytestmark = pytest.mark.model

HARVARD = [
    "The birch canoe slid on the smooth planks.",
    "Glue the sheet to the dark blue background.",
    "It's easy to tell the depth of a well.",
    "Rice is often served in round bowls.",
    "The juice of lemons makes fine punch.",
    "The box was thrown beside the parked truck.",
    "Four hours of steady work faced us.",
    "The boy was there when the sun rose.",
    "A rod is used to catch pink salmon.",
    "The source of the huge river is the clear spring.",
]
TEXT = "Hello there, my friend. Here is a second sentence, which is a little longer!\nThird line."


def params(seed=5, speed=1.0):
    return talker_params(PiperSettings, "joe", seed, speed=speed)


def words_of(text):
    return re.findall(r"[a-z']+", text.lower())


def test_speech_is_recognised_to_its_last_word(speak, recognise):
    wrong, last_words = 0, 0
    for sentence in HARVARD:
        samples, _ = speak(a=(sentence, params()))["a"]
        said, heard = words_of(sentence), words_of(recognise(samples))
        wrong += num_errors(said, heard)
        last_words += heard[-1:] == said[-1:]
    assert wrong <= 0.12 * sum(len(words_of(sentence)) for sentence in HARVARD)
    assert last_words >= len(HARVARD) - 1


def test_a_paragraph_is_recognised_across_its_pieces(speak, recognise):
    text = "Good morning to all of you. The train to London leaves at noon,\nso please be on time."
    heard = words_of(recognise(speak(a=(text, params()))["a"][0]))
    assert num_errors(words_of(text), heard) <= 2
    assert heard[-1] == "time"


def test_the_same_seed_sounds_the_same_alone_and_in_a_crowd(speak):
    alone, end = speak(a=(TEXT, params()))["a"]
    crowd = speak(
        x=("Somebody else talks at the same time, for longer.", params(seed=1)),
        a=(TEXT, params()),
        y=("And one more.", params(seed=2, speed=1.5)),
        z=(TEXT, params(seed=6)),
    )
    samples, crowd_end = crowd["a"]
    assert crowd_end == end
    assert np.abs(samples.astype(int) - alone).max() <= 1
    other = crowd["z"][0]
    assert other.shape != alone.shape or np.abs(other.astype(int) - alone).max() > 100


def test_there_is_silence_between_sentences_and_none_is_added_at_the_end(speak):
    samples, end = speak(a=("One. Two.", params()))["a"]
    assert end.num_samples == len(samples)
    loud = np.flatnonzero(np.abs(samples) > 600) / 24000
    assert np.diff(loud).max() > 0.3
    assert len(samples) / 24000 - loud[-1] < 0.35


@pytest.mark.parametrize("speed", [0.5, 1.5])
def test_speech_is_recognised_at_other_speeds(speak, recognise, speed):
    text = " ".join(HARVARD[2:6])
    normal, other = (len(speak(a=(text, params(speed=s)))["a"][0]) for s in (1.0, speed))
    assert other == pytest.approx(normal / speed, rel=0.1)
    heard = words_of(recognise(speak(a=(text, params(speed=speed)))["a"][0]))
    assert num_errors(words_of(text), heard) <= 0.15 * len(words_of(text))
