"""code2wav of Qwen3-TTS as a worker sees it: one exact stream, whatever the cuts and company."""

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.contract.errors import RequestError
from stages.contract.messages import AudioEnd, Caption, Code2WavParams, CodecChunk, TextSpan
from stages.models.qwen3_tts.code2wav.sound import MAX_WAITING

HOP = 1920
FRAME_S = HOP / 24_000


def codes_of(seed, num_frames):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (num_frames, 6), generator=generator)


def chunks_of(codes, size=1):
    return [CodecChunk(part) for part in codes.split(size)]


def whole(decoder, codes):
    samples = decoder.decode(codes[None], decoder.new_past())[0]
    return np.rint(samples.numpy() * 32767).astype(np.int16)


def samples_of(audio):
    return np.concatenate([chunk.samples for chunk in audio])


def assert_same(audio, expected):
    samples = samples_of(audio)
    assert len(samples) == len(expected)
    assert np.abs(samples.astype(int) - expected).max() <= 1


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_streamed_equals_whole_for_any_cuts(bench, decoder, sizes):
    codes = codes_of(0, sum(sizes))
    bench.open("a", [CodecChunk(part) for part in codes.split(sizes)])
    bench.run()
    assert_same(bench.audio["a"], whole(decoder, codes))
    assert bench.ends["a"] == AudioEnd(len(codes) * HOP, audio_tokens=len(codes))


def test_requests_together_sound_as_each_alone(bench, decoder):
    lengths = {"a": 30, "b": 3, "c": 17, "d": 24, "e": 9}
    codes = {rid: codes_of(seed, n) for seed, (rid, n) in enumerate(lengths.items())}
    for request_id, frames in codes.items():
        bench.open(request_id, chunks_of(frames, 3))
    bench.run()
    for request_id, frames in codes.items():
        assert_same(bench.audio[request_id], whole(decoder, frames))
        assert bench.ends[request_id].audio_tokens == len(frames)


def test_one_call_serves_several_requests(bench):
    for request_id in "abc":
        bench.open(request_id, chunks_of(codes_of(1, 5)))
    for request_id in "abc":
        bench.stage.feed(request_id, bench.waiting[request_id].pop(0))
    assert sorted(bench.step()) == ["a", "b", "c"]


def test_frames_that_are_not_heard_only_change_the_state(bench, decoder):
    reference, speech = codes_of(2, 11), codes_of(3, 10)
    bench.open("a", [CodecChunk(reference, audible=False), *chunks_of(speech)])
    bench.run()
    together = whole(decoder, torch.cat([reference, speech]))
    assert_same(bench.audio["a"], together[len(reference) * HOP :])
    assert bench.ends["a"] == AudioEnd(10 * HOP, audio_tokens=10)


def test_a_speech_of_nothing_ends(bench):
    bench.open("a", [])
    bench.run()
    assert bench.ends["a"] == AudioEnd(0, 0)
    assert bench.audio["a"] == []


def test_the_first_frame_is_heard_at_once_and_then_chunks_grow(bench):
    bench.open("a", chunks_of(codes_of(4, 60)))
    bench.stage.feed("a", bench.waiting["a"].pop(0))
    assert bench.step() == ["a"]
    while len(bench.waiting["a"]) > 1:  # frames come faster than they are heard
        bench.stage.feed("a", bench.waiting["a"].pop(0))
        if bench.stage.ready("a"):
            bench.step()
    sizes = [len(chunk.samples) // HOP for chunk in bench.audio["a"]]
    assert sizes[:3] == [1, 1, 1]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2  # the most that a CPU decodes at once


def test_a_stream_gathers_frames_only_while_its_listener_has_enough(bench, clock):
    bench.open("a", chunks_of(codes_of(5, 30)))
    for _ in range(8):
        bench.stage.feed("a", bench.waiting["a"].pop(0))
    while bench.stage.ready("a"):
        bench.step()
    bench.stage.feed("a", bench.waiting["a"].pop(0))
    assert not bench.stage.ready("a")
    clock.now_s += 5 * FRAME_S  # of 8
    assert bench.stage.ready("a")


def test_the_listener_who_runs_dry_first_is_served_first(bench, clock):
    for request_id in "ab":
        bench.open(request_id, chunks_of(codes_of(6, 40)))
        bench.stage.feed(request_id, bench.waiting[request_id].pop(0))
        bench.step()
        clock.now_s += FRAME_S / 2
    for request_id in "ba":
        for _ in range(2):
            bench.stage.feed(request_id, bench.waiting[request_id].pop(0))
    assert [bench.step(), bench.step()] == [["a"], ["b"]]


def test_no_more_frames_are_taken_than_two_seconds(bench):
    bench.open("a", chunks_of(codes_of(7, 60)))
    bench.feed()
    assert 61 - len(bench.waiting["a"]) == MAX_WAITING
    bench.step()
    assert bench.stage.wants_chunk("a")


def test_a_caption_is_reported_in_samples_with_what_is_heard_of_it(bench):
    frames = codes_of(8, 9)
    caption = Caption(TextSpan(0, 12, 0, 9))
    bench.open("a", [*chunks_of(frames[:8]), CodecChunk(frames[8:], caption=caption)])
    for _ in range(8):
        bench.stage.feed("a", bench.waiting["a"].pop(0))
        while bench.stage.ready("a"):
            bench.step()
    assert not any(chunk.captions for chunk in bench.audio["a"])
    bench.run()
    assert bench.audio["a"][-1].captions == (Caption(TextSpan(0, 12, 0, 9 * HOP)),)


def test_frames_of_another_codec_fail_their_request(bench):
    bench.stage.open("a", Code2WavParams("ryan"))
    with pytest.raises(RequestError, match="5 codes, not 6"):
        bench.stage.feed("a", CodecChunk(codes_of(0, 1)[:, :5]))


def test_a_closed_request_leaves_nothing(bench):
    bench.open("a", chunks_of(codes_of(9, 20)))
    bench.feed()
    bench.step()
    numbers = weakref.ref(bench.stage._sounds["a"].stream.numbers)
    assert numbers() is not None
    bench.stage.close("a")
    gc.collect()
    assert numbers() is None
