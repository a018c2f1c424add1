"""Percentiles, and what batches come to."""

import pytest

from benchmarks.measured import Batch, is_good, summarise
from benchmarks.outcome import Outcome
from benchmarks.spread import quantile, spread


def outcome(began_s=0.0, **given):
    usual = {"status": 200, "good": True, "ended_s": 2.0, "first_audio_s": 0.5, "audio_s": 10.0}
    return Outcome(began_s, **{**usual, **given})


@pytest.mark.parametrize(("q", "value"), [(0.0, 1.0), (0.5, 2.5), (0.95, 3.85), (1.0, 4.0)])
def test_quantiles_are_interpolated(q, value):
    assert quantile([4.0, 1.0, 3.0, 2.0], q) == pytest.approx(value)


def test_a_quantile_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="no quantile"):
        quantile([], 0.5)


def test_a_spread_of_nothing_is_none():
    assert spread([]) is None
    assert spread([3.0])["p99"] == 3.0


def test_throughput_is_from_the_first_request_to_the_last_byte():
    batch = Batch([outcome(1.0), outcome(2.0, ended_s=3.0)], cpu_s=2)

    row = summarise([batch])

    assert row["audio_s_per_s"] == 20 / 4
    assert row["cpu_s_per_audio_s"] == 0.1


def test_the_slowest_first_audio_is_the_median_over_batches():
    batches = [Batch([outcome(), outcome(first_audio_s=s)], 1) for s in (1.0, 2.0, 9.0)]

    row = summarise(batches)

    assert row["first_audio_slowest_s"] == 2.0
    assert row["first_audio_s"]["median"] == 0.75
    assert row["first_audio_s"]["max"] == 9.0


def test_refusals_and_failures_are_told_apart_and_do_not_count_as_heard():
    refused = outcome(status=429, good=False, first_audio_s=None, audio_s=0.0)
    broken = outcome(good=False, first_audio_s=0.1)

    row = summarise([Batch([outcome(), outcome(), refused, broken], 1)])

    assert (row["refused"], row["failed"], row["good"]) == (0.25, 0.25, 0.5)
    assert row["statuses"] == {"200": 3, "429": 1}
    assert row["first_audio_s"]["num"] == 2


def test_a_row_of_refusals_only_has_no_figures():
    refused = outcome(status=429, good=False, first_audio_s=None, audio_s=0.0)

    row = summarise([Batch([refused], 1)])

    assert row["first_audio_s"] is None
    assert row["audio_s_per_s"] is None


@pytest.mark.parametrize(
    "given", [{"good": False}, {"first_audio_s": 1.1}, {"first_audio_s": None}, {"dry_buffered": 1}]
)
def test_a_stream_that_is_late_broken_or_has_gaps_is_not_good(given):
    assert is_good(outcome())
    assert not is_good(outcome(**given))
