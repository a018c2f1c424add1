"""code2wav as a worker uses it: one exact stream of samples, however frames are cut."""

from itertools import pairwise

import numpy as np
import pytest
import soxr
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.contract.errors import RequestError
from stages.contract.messages import AudioEnd, Code2WavParams, LatentChunk
from stages.models.piper.code2wav_request import MAX_WAITING_FRAMES, SIZES
from stages.models.piper.hifigan import HifiGan
from stages.runtime.cores import FIRST_SOUNDS
from tests.stages.credit import CREDIT

pytestmark = pytest.mark.model

PIECES = [(70, 0.2), (9, 0.0), (40, 0.0)]  # frames, pause after


def frames_of(num_frames):
    generator = torch.Generator().manual_seed(num_frames)
    return torch.randn(num_frames, 192, generator=generator)


def chunks_of(cuts=()):
    """The pieces, each cut at those of `cuts` that are inside it."""
    for num_frames, pause_s in PIECES:
        edges = [0, *sorted(cut for cut in set(cuts) if 0 < cut < num_frames), num_frames]
        for begin, end in pairwise(edges):
            last = end == num_frames
            frames = frames_of(num_frames)[begin:end]
            yield LatentChunk(frames, begin == 0, last, pause_s if last else 0.0)


@pytest.fixture(scope="module")
def expected(parameters):
    """Each piece decoded whole, joined with silence, resampled in one shot."""
    decoder, parts = HifiGan(parameters), []
    for num_frames, pause_s in PIECES:
        parts.append(decoder.decode(frames_of(num_frames), 0, num_frames).numpy())
        parts.append(np.zeros(round(pause_s * 22050), np.float32))
    samples = soxr.resample(np.concatenate(parts), 22050, 24000, quality="HQ")
    return np.rint(np.clip(samples * 32767, -32768, 32767)).astype(np.int16)


def assert_same(audio, expected):
    samples = np.concatenate([chunk.samples for chunk in audio])
    assert len(samples) == len(expected)
    assert np.abs(samples.astype(int) - expected).max() <= 1


@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(1, 70), max_size=8))
def test_streamed_equals_whole_for_any_cuts(decode, expected, cuts):
    audio, end = decode(chunks_of(cuts))
    assert_same(audio, expected)
    assert end == AudioEnd(len(expected), audio_tokens=-(-len(expected) // 1200))


def test_frame_by_frame_equals_whole(decode, expected):
    assert_same(decode(chunks_of(range(70)))[0], expected)


def durations_s(code2wav):
    while code2wav.ready("a", CREDIT):
        (emit,) = code2wav.step({"a": CREDIT})
        yield len(emit.chunk.samples) / emit.chunk.rate_hz


def test_a_chunk_is_decoded_as_soon_as_the_smallest_size_has_its_context(code2wav):
    code2wav.open("a", Code2WavParams("joe"))
    frames = frames_of(16)
    code2wav.feed("a", LatentChunk(frames[:15], first=True, last=False))
    assert not code2wav.ready("a", CREDIT)
    code2wav.feed("a", LatentChunk(frames[15:], first=False, last=False))
    FIRST_SOUNDS.begin("a")  # as the talker did
    assert list(durations_s(code2wav)) == [pytest.approx(5 * 256 / 22050, abs=0.043)]
    assert FIRST_SOUNDS.num_coming == 0
    code2wav.close("a")


@pytest.mark.parametrize("size", SIZES)
def test_a_slice_of_the_talker_is_decoded_at_once_except_its_context(code2wav, size):
    code2wav.open("a", Code2WavParams("joe"))
    code2wav.feed("a", LatentChunk(frames_of(size + 11), first=True, last=False))
    first = list(durations_s(code2wav))
    code2wav.feed("a", LatentChunk(frames_of(size), first=False, last=False))
    second = list(durations_s(code2wav))
    code2wav.close("a")
    assert (len(first), len(second)) == (1, 1)
    assert first[0] == pytest.approx(size * 256 / 22050, abs=0.043)
    assert second[0] == pytest.approx(size * 256 / 22050, abs=0.043)


def test_no_more_frames_wait_than_the_largest_chunk_has(code2wav):
    code2wav.open("a", Code2WavParams("joe"))
    num_frames = 0
    while code2wav.wants_chunk("a"):
        code2wav.feed("a", LatentChunk(frames_of(20), first=num_frames == 0, last=False))
        num_frames += 20
    assert 0 <= num_frames - MAX_WAITING_FRAMES < 20
    code2wav.close("a")


def test_without_frames_the_sound_is_empty(decode):
    assert decode([]) == ([], AudioEnd(0, 0))


def test_loud_samples_are_clipped_not_wrapped(decode):
    audio, _ = decode([LatentChunk(frames_of(40) * 30, first=True, last=True)])
    samples = np.concatenate([chunk.samples for chunk in audio]).astype(int)
    assert np.abs(np.diff(samples)).max() < 60_000
    assert np.abs(samples).max() > 30_000


def test_an_unknown_voice_fails_its_request(code2wav):
    with pytest.raises(RequestError, match="no_such_voice"):
        code2wav.open("a", Code2WavParams("no_such_voice"))


def test_an_exception_fails_its_request(code2wav):
    code2wav.open("a", Code2WavParams("joe"))
    code2wav.feed("a", LatentChunk(torch.zeros(40, 7), first=True, last=True))
    with pytest.raises(RequestError) as error:
        list(code2wav.step({"a": CREDIT}))
    assert error.value.request_id == "a"
    code2wav.close("a")
