"""Calls of a few sizes for any number of streams; what a graph does, recorded work does here."""

import numpy as np
import pytest
import torch

from stages.models.qwen3_tts.code2wav.batches import FRAMES, MAX_FRAMES_CPU, Batches


def codes_of(seed, num_frames):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (num_frames, 6), generator=generator)


class Recorder:
    """Stands for a graph: repeats work on the same memory, and counts."""

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
def batches(decoder, request):
    batches = Batches(decoder, Recorder() if request.param == "recorded" else None)
    batches.warm()
    return batches


def whole(decoder, codes):
    samples = decoder.decode(codes[None], decoder.new_past())[0]
    return np.rint(samples.numpy() * 32767).astype(np.int16)


def assert_same(samples, expected):
    assert samples.dtype == np.int16
    assert np.abs(samples.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("num_streams", [1, 2, 3])
def test_streams_sound_as_alone_whatever_runs_beside(decoder, batches, num_streams):
    streams = [batches.new_stream() for _ in range(num_streams)]
    codes = [codes_of(seed, 12) for seed in range(num_streams)]
    parts = [[] for _ in streams]
    for turn in range(12):
        # Who is in the call, and in which place, changes from call to call.
        order = [(turn + i) % num_streams for i in range(num_streams - (turn % 3 == 1))]
        members = [
            [streams[i] for i in order],
            [codes[i][streams[i].position : streams[i].position + 1] for i in order],
        ]
        if order:
            for i, row in zip(order, batches.decode(*members), strict=True):
                parts[i].append(row)
    for stream, part, frames in zip(streams, parts, codes, strict=True):
        assert stream.position == len(part) > 0
        assert_same(np.concatenate(part), whole(decoder, frames[: len(part)]))


def test_calls_of_other_sizes_follow_each_other(decoder, batches):
    stream, codes = batches.new_stream(), codes_of(9, 8)
    parts = []
    for begin, end in ((0, 1), (1, 3), (3, 5), (5, 6), (6, 8)):
        parts.append(batches.decode([stream], [codes[begin:end]])[0])
    assert_same(np.concatenate(parts), whole(decoder, codes))


def test_all_is_captured_before_the_first_call_and_then_only_repeated(decoder):
    recorder = Recorder()
    batches = Batches(decoder, recorder)
    batches.warm()
    num_captured = recorder.num_captured
    streams = [batches.new_stream() for _ in range(3)]  # the next larger size serves
    for num_frames in (1, 2, 8):
        count = 3 if num_frames == 1 else 1
        batches.decode(streams[:count], [codes_of(0, num_frames)] * count)
    assert (recorder.num_captured, recorder.num_replayed) == (num_captured, 3)


def test_a_call_on_a_cpu_is_short(decoder):
    batches = Batches(decoder, None)
    for waiting in range(1, 30):
        num_frames = batches.max_frames(waiting)
        assert num_frames in FRAMES
        assert num_frames <= waiting
        assert num_frames * batches.max_streams(num_frames) <= MAX_FRAMES_CPU
