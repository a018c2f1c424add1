"""Each format is valid, complete, streamed early, and independent of how the audio is cut."""

import io
import itertools
import struct
import wave

import av
import numpy as np
import pytest

from server.encoding.formats import FORMATS, Codec, PyAvEncoder, whole_file
from tests.server.decoding import decode, seconds

ALL = tuple(FORMATS)
DELAY_S = {"mp3": 0.1, "aac": 0.1}  # of the codec; none of the others has one
TENTH = 2400  # samples


def tones(num_samples):
    """Audio that is nowhere silent and never repeats."""
    at = np.arange(num_samples)
    return (6000 * np.sin(at * (0.05 + at * 1e-7))).astype("<i2").tobytes()


def encode(name, samples, cuts=()):
    """The parts of the file: its head, one for each chunk, and its tail."""
    encoder = FORMATS[name].open()
    pieces = [encoder.head()]
    edges = (0, *cuts, len(samples) // 2)
    pieces += [
        encoder.feed(samples[2 * start : 2 * end]) for start, end in itertools.pairwise(edges)
    ]
    pieces.append(encoder.flush())
    encoder.close()
    return pieces


def opened(name, samples):
    container = "s16le" if name == "pcm" else None
    return decode(b"".join(encode(name, samples)), container)


@pytest.mark.parametrize("name", ALL)
def test_the_first_tenth_of_a_second_gives_bytes(name):
    head, first, *_ = encode(name, tones(10 * TENTH), range(TENTH, 10 * TENTH, TENTH))
    assert len(first) > 100
    assert not head or name not in ("mp3", "aac", "pcm")


@pytest.mark.parametrize("name", ALL)
def test_every_further_tenth_gives_bytes(name):
    _, *pieces, _ = encode(name, tones(50 * TENTH), range(TENTH, 50 * TENTH, TENTH))
    assert all(pieces)


@pytest.mark.parametrize("name", ALL)
def test_the_file_does_not_depend_on_the_chunks(name):
    samples = tones(30_011)
    cuts = np.cumsum(np.random.default_rng(4).integers(0, 3000, 20))
    one = b"".join(encode(name, samples))
    assert b"".join(encode(name, samples, [c for c in cuts if c < 30_011])) == one
    assert b"".join(encode(name, samples, range(1, 400, 7))) == one


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("num_samples", [1, 575, 2400, 24_000, 71_993])
def test_the_decoded_length_is_that_of_the_samples(name, num_samples):
    late_s = len(opened(name, tones(num_samples))) / 24_000 - num_samples / 24_000
    assert -0.001 < late_s < DELAY_S.get(name, 0.01)


@pytest.mark.parametrize("name", ALL)
def test_the_very_last_samples_are_in_the_file(name):
    samples = np.zeros(24_000, "<i2")
    samples[-960:] = np.frombuffer(tones(960), "<i2")
    heard = opened(name, samples.tobytes()).astype(float)
    assert np.square(heard).sum() == pytest.approx(np.square(samples.astype(float)).sum(), rel=0.2)


@pytest.mark.parametrize("name", ALL)
def test_a_file_without_samples_is_valid(name):
    assert len(opened(name, b"")) < DELAY_S.get(name, 0.01) * 24_000


def test_each_format_begins_with_its_signature():
    heads = {name: b"".join(encode(name, tones(TENTH))) for name in ALL}
    assert heads["mp3"].startswith(b"\xff\xf3")
    assert heads["aac"].startswith(b"\xff\xf1")
    assert heads["opus"].startswith(b"OggS")
    name, version, channels, _, rate = struct.unpack_from("<8sBBHI", heads["opus"], 28)
    assert (name, version, channels, rate) == (b"OpusHead", 1, 1, 24_000)
    assert heads["wav"].startswith(b"RIFF\xff\xff\xff\xffWAVE")
    assert heads["wav"][36:44] == b"data\xff\xff\xff\xff"
    assert heads["pcm"] == tones(TENTH)


def test_streamed_flac_has_no_length_and_no_padding():
    head, *_ = encode("flac", tones(TENTH))
    assert head.startswith(b"fLaC")
    assert int.from_bytes(head[21:26]) & (2**36 - 1) == 0
    assert head[26:42] == bytes(16)
    assert len(head) < 100


def test_a_codec_that_cannot_be_opened_raises_at_once():
    with pytest.raises(av.FFmpegError):
        PyAvEncoder(Codec("ogg", "libopus", options={"page_duration": "soon"}))


@pytest.mark.parametrize("name", ["wav", "mp3", "flac", "opus"])
def test_a_whole_file_contains_its_length(name):
    assert seconds(whole_file(tones(24_100), name)) == pytest.approx(24_100 / 24_000, abs=1e-4)


def test_a_whole_wav_ends_with_its_samples():
    file = whole_file(tones(24_100), "wav")
    with wave.open(io.BytesIO(file)) as reader:
        assert reader.getnframes() == 24_100
    assert len(file) == 44 + 2 * 24_100


def test_whole_flac_contains_its_length_and_its_checksum():
    file = whole_file(tones(24_100), "flac")
    assert int.from_bytes(file[21:26]) & (2**36 - 1) == 24_100
    assert file[26:42] != bytes(16)


def test_whole_aac_is_as_long_as_the_sound_and_the_codecs_delay():
    assert 1.0 <= seconds(whole_file(tones(24_000), "aac")) <= 1.1


def test_pcm_is_unchanged():
    assert whole_file(tones(10), "pcm16") == tones(10)
