"""code2wav of Qwen3-TTS as a worker sees it: exact streams, however they are cut and batched."""

import gc

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.contract.errors import RequestError
from stages.contract.messages import AudioEnd, Caption, Code2WavParams, CodecChunk, TextSpan
from stages.models.qwen3_tts.code2wav.request import MAX_WAITING_FRAMES
from tests.stages.credit import CREDIT
from tests.stages.models.qwen3_tts.code2wav.driver import decoded_pcm, random_codes

HOP = 1920
FRAME_S = HOP / 24_000


def chunks_of(codes, size=1):
    return [CodecChunk(part) for part in codes.split(size)]


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
def test_streamed_equals_whole_for_any_cuts(driver, decoder, sizes):
    codes = random_codes(0, sum(sizes))
    driver.open("a", [CodecChunk(part) for part in codes.split(sizes)])
    driver.run()
    assert_same(driver.audio["a"], decoded_pcm(decoder, codes))
    assert driver.ends["a"] == AudioEnd(len(codes) * HOP, audio_tokens=len(codes))


def test_requests_together_get_the_same_samples_as_alone(driver, decoder):
    lengths = {"a": 30, "b": 3, "c": 17, "d": 24, "e": 9}
    codes = {rid: random_codes(seed, n) for seed, (rid, n) in enumerate(lengths.items())}
    for request_id, frames in codes.items():
        driver.open(request_id, chunks_of(frames, 3))
    driver.run()
    for request_id, frames in codes.items():
        assert_same(driver.audio[request_id], decoded_pcm(decoder, frames))
        assert driver.ends[request_id].audio_tokens == len(frames)


def test_one_call_serves_several_requests(driver):
    for request_id in "abc":
        driver.open(request_id, chunks_of(random_codes(1, 5)))
    for request_id in "abc":
        driver.stage.feed(request_id, driver.waiting[request_id].pop(0))
    assert sorted(driver.step()) == ["a", "b", "c"]


def test_context_frames_change_the_state_and_are_not_emitted(driver, decoder):
    reference, speech = random_codes(2, 11), random_codes(3, 10)
    driver.open("a", [CodecChunk(reference, audible=False), *chunks_of(speech)])
    driver.run()
    together = decoded_pcm(decoder, torch.cat([reference, speech]))
    assert_same(driver.audio["a"], together[len(reference) * HOP :])
    assert driver.ends["a"] == AudioEnd(10 * HOP, audio_tokens=10)


def test_a_request_without_frames_ends(driver):
    driver.open("a", [])
    driver.run()
    assert driver.ends["a"] == AudioEnd(0, 0)
    assert driver.audio["a"] == []


def test_the_first_frame_is_emitted_at_once_and_then_chunks_grow(driver):
    driver.open("a", chunks_of(random_codes(4, 60)))
    driver.stage.feed("a", driver.waiting["a"].pop(0))
    assert driver.step() == ["a"]
    while len(driver.waiting["a"]) > 1:  # frames come faster than real time
        driver.stage.feed("a", driver.waiting["a"].pop(0))
        if driver.stage.ready("a", CREDIT):
            driver.step()
    sizes = [len(chunk.samples) // HOP for chunk in driver.audio["a"]]
    assert sizes[:3] == [1, 1, 1]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2  # the largest call on a CPU


def test_a_request_gathers_frames_only_while_its_client_has_enough_audio(driver, clock):
    driver.open("a", chunks_of(random_codes(5, 30)))
    for _ in range(8):
        driver.stage.feed("a", driver.waiting["a"].pop(0))
    while driver.stage.ready("a", CREDIT):
        driver.step()
    driver.stage.feed("a", driver.waiting["a"].pop(0))
    assert not driver.stage.ready("a", CREDIT)
    clock.now_s += 5 * FRAME_S  # of 8 that were emitted
    assert driver.stage.ready("a", CREDIT)


def test_the_client_that_runs_out_first_is_served_first(driver, clock):
    for request_id in "ab":
        driver.open(request_id, chunks_of(random_codes(6, 40)))
        driver.stage.feed(request_id, driver.waiting[request_id].pop(0))
        driver.step()
        clock.now_s += FRAME_S / 2
    for request_id in "ba":
        for _ in range(2):
            driver.stage.feed(request_id, driver.waiting[request_id].pop(0))
    assert [driver.step(), driver.step()] == [["a"], ["b"]]


def test_at_most_two_seconds_of_frames_wait(driver):
    driver.open("a", chunks_of(random_codes(7, 60)))
    driver.feed()
    assert 61 - len(driver.waiting["a"]) == MAX_WAITING_FRAMES
    driver.step()
    assert driver.stage.wants_chunk("a")


def test_a_caption_comes_with_its_last_samples(driver):
    frames = random_codes(8, 9)
    caption = Caption(TextSpan(0, 12, 0, 9))
    driver.open("a", [*chunks_of(frames[:8]), CodecChunk(frames[8:], caption=caption)])
    for _ in range(8):
        driver.stage.feed("a", driver.waiting["a"].pop(0))
        while driver.stage.ready("a", CREDIT):
            driver.step()
    assert not any(chunk.captions for chunk in driver.audio["a"])
    driver.run()
    assert driver.audio["a"][-1].captions == (Caption(TextSpan(0, 12, 0, 9 * HOP)),)


def test_frames_of_another_codec_fail_their_request(driver):
    driver.stage.open("a", Code2WavParams("ryan"))
    with pytest.raises(RequestError, match="5 codes each; this codec needs 6"):
        driver.stage.feed("a", CodecChunk(random_codes(0, 1)[:, :5]))


def num_states(size):
    """How many states of one stream are alive in this process."""
    gc.collect()
    found = [each for each in gc.get_objects() if type(each) is torch.Tensor]
    return sum(tensor.shape == (size,) for tensor in found)


def test_closing_a_request_frees_its_state(driver, decoder):
    num_before = num_states(decoder.state_size)
    driver.open("a", chunks_of(random_codes(9, 20)))
    driver.feed()
    driver.step()
    assert num_states(decoder.state_size) == num_before + 1
    driver.stage.close("a")
    assert num_states(decoder.state_size) == num_before
