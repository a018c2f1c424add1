"""Samples as bytes."""

import io
import wave

import numpy as np
import pytest

from server.encoding.pcm import pcm, wav_header
from stages.contract.messages import AudioChunk


def test_samples_are_little_endian():
    assert pcm(AudioChunk(np.array([1, -2], ">i2"), 24_000)) == b"\x01\x00\xfe\xff"


def test_another_rate_is_an_error():
    with pytest.raises(ValueError, match="22050 Hz"):
        pcm(AudioChunk(np.zeros(1, np.int16), 22_050))


def test_the_header_of_a_whole_file_has_its_size():
    with wave.open(io.BytesIO(wav_header(6) + bytes(6))) as file:
        assert file.getnframes() == 3
