"""Calls of a few sizes for any number of streams. Recorded work stands for CUDA graphs."""

import numpy as np
import pytest

from stages.models.qwen3_tts.code2wav.batch_decoder import (
    CALL_FRAMES,
    MAX_TOTAL_FRAMES_CPU,
    BatchDecoder,
)
from tests.stages.models.qwen3_tts.code2wav.driver import decoded_pcm, random_codes


class CountingCapture:
    """In place of CUDA graphs: repeats work on the same memory, and counts captures and replays."""

    def __init__(self):
        self.num_captured = 0
        self.num_replayed = 0

    def __call__(self, work):
        self.num_captured += 1
        work()

        def replay():
            self.num_replayed += 1
            work()

        return replay


@pytest.fixture(scope="module", params=["plain", "recorded"])
def batch_decoder(decoder, request):
    batch_decoder = BatchDecoder(
        decoder, CountingCapture() if request.param == "recorded" else None
    )
    batch_decoder.warm()
    return batch_decoder


def assert_same(samples, expected):
    assert samples.dtype == np.int16
    assert np.abs(samples.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("num_streams", [1, 2, 3])
def test_streams_in_one_call_give_the_same_samples_as_alone(decoder, batch_decoder, num_streams):
    streams = [batch_decoder.new_stream() for _ in range(num_streams)]
    codes = [random_codes(seed, 12) for seed in range(num_streams)]
    parts = [[] for _ in streams]
    for turn in range(12):
        # The streams of a call, and their order, change from call to call.
        order = [(turn + i) % num_streams for i in range(num_streams - (turn % 3 == 1))]
        members = [
            [streams[i] for i in order],
            [codes[i][streams[i].position : streams[i].position + 1] for i in order],
        ]
        if order:
            for i, row in zip(order, batch_decoder.decode(*members), strict=True):
                parts[i].append(row)
    for stream, part, frames in zip(streams, parts, codes, strict=True):
        assert stream.position == len(part) > 0
        assert_same(np.concatenate(part), decoded_pcm(decoder, frames[: len(part)]))


def test_calls_of_different_sizes_continue_one_stream(decoder, batch_decoder):
    stream, codes = batch_decoder.new_stream(), random_codes(9, 8)
    parts = []
    for begin, end in ((0, 1), (1, 3), (3, 5), (5, 6), (6, 8)):
        parts.append(batch_decoder.decode([stream], [codes[begin:end]])[0])
    assert_same(np.concatenate(parts), decoded_pcm(decoder, codes))


def test_warm_captures_every_size_and_calls_only_replay(decoder):
    capture = CountingCapture()
    batch_decoder = BatchDecoder(decoder, capture)
    batch_decoder.warm()
    num_captured = capture.num_captured
    streams = [batch_decoder.new_stream() for _ in range(3)]  # the next larger size is used
    for num_frames in (1, 2, 8):
        count = 3 if num_frames == 1 else 1
        batch_decoder.decode(streams[:count], [random_codes(0, num_frames)] * count)
    assert (capture.num_captured, capture.num_replayed) == (num_captured, 3)


def test_a_call_on_a_cpu_is_short(decoder):
    batch_decoder = BatchDecoder(decoder, None)
    for num_waiting in range(1, 30):
        num_frames = batch_decoder.max_frames(num_waiting)
        assert num_frames in CALL_FRAMES
        assert num_frames <= num_waiting
        assert num_frames * batch_decoder.max_streams(num_frames) <= MAX_TOTAL_FRAMES_CPU
