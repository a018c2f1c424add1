"""A listener's jitter buffer: when it runs dry, for how long, and how playback resumes."""

import pytest

from stages.contract.jitter_buffer import JitterBuffer


def test_audio_that_arrives_within_the_delay_is_no_underrun():
    buffer = JitterBuffer(delay_s=0.1)
    buffer.push(0.2, 5.0)
    buffer.push(0.2, 5.3)
    assert (buffer.num_underruns, buffer.silent_s, buffer.empty_at_s) == (0, 0.0, 5.5)


def test_late_audio_is_one_underrun_of_the_time_it_was_late():
    buffer = JitterBuffer(delay_s=0.1)
    buffer.push(0.2, 5.0)
    buffer.push(0.2, 5.5)
    assert (buffer.num_underruns, buffer.silent_s) == (1, pytest.approx(0.2))


def test_after_an_underrun_playback_resumes_with_the_audio_that_ended_it():
    buffer = JitterBuffer()
    buffer.push(1.0, 0.0)
    buffer.push(5.0, 10.0)
    assert buffer.empty_at_s == 15.0
    buffer.push(1.0, 15.0)
    assert (buffer.num_underruns, buffer.silent_s, buffer.empty_at_s) == (1, 9.0, 16.0)


def test_after_an_underrun_there_is_no_new_delay():
    buffer = JitterBuffer(delay_s=0.1)
    buffer.push(0.2, 0.0)
    buffer.push(0.2, 1.0)
    buffer.push(0.2, 1.25)
    assert (buffer.num_underruns, buffer.silent_s) == (2, pytest.approx(0.7 + 0.05))
