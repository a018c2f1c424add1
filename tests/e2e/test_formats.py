"""The embedded voice in every format: the right length, and complete to the last word."""

import re

import numpy as np
import pytest

from tests.server.decoding import decode

pytestmark = pytest.mark.model

TWENTY = (
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty."
)
CODEC_DELAY_S = {"mp3": 0.1, "aac": 0.1}
FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")


@pytest.fixture(scope="module")
def speak(client):
    def run(name, **changes):
        body = {"seed": 5, **changes.pop("extra_body", {})}
        ask = {"model": "tts-1", "voice": "alloy", "input": TWENTY, **changes}
        file = client.audio.speech.create(**ask, response_format=name, extra_body=body).content
        return decode(file, "s16le" if name == "pcm" else None)

    return run


@pytest.fixture(scope="module")
def pcm(speak):
    return speak("pcm")


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_as_long_as_pcm_and_has_the_last_word(name, speak, pcm, transcribe):
    samples = speak(name)
    late_s = (len(samples) - len(pcm)) / 24_000
    assert -0.001 < late_s < CODEC_DELAY_S.get(name, 0.05)
    words = re.findall(r"\w+", transcribe(samples.tobytes()).lower())
    assert words[-1] in ("twenty", "20")


@pytest.mark.parametrize("name", ["flac", "wav"])
def test_lossless_formats_have_the_same_samples(name, speak, pcm):
    assert np.array_equal(speak(name), pcm)


@pytest.mark.parametrize("speed", [0.25, 4.0])
def test_speed_divides_the_length(speed, speak, pcm):
    assert len(speak("pcm", speed=speed)) * speed == pytest.approx(len(pcm), rel=0.15)


@pytest.mark.parametrize(
    "text",
    [
        "Hello\u0000 wor\u0007ld.",
        "no\u00a0break and zero\u200bwidth",
        "tab\tand\r\nlines",
        "\u201ccurly\u201d \u2018quotes\u2019",
    ],
)
def test_odd_characters_are_spoken(text, speak):
    samples = speak("pcm", input=text)
    assert len(samples) > 0.3 * 24_000
    assert np.abs(samples.astype(int)).max() > 1000
