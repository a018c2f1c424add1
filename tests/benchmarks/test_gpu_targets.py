"""What a run on a GPU says of its aims."""

import pytest

from benchmarks.gpu.targets import TARGETS, result_table, verdict_table


def row(load, at, p95_s=0.020, **changes):
    spread = {"median": p95_s / 2, "p95": p95_s, "p99": p95_s, "max": p95_s}
    figures = {
        "load": load,
        "at": at,
        "requests": 40,
        "complete": 40,
        "first_audio_s": spread,
        "gap_s": None,
        "audio_s_per_s": 200.0,
        "ran_dry": 0.0,
    }
    return figures | changes


def verdicts(rows):
    lines = verdict_table(rows).splitlines()[-len(TARGETS) :]
    return [line.split("|")[-2].strip() for line in lines]


def test_each_aim_is_met_missed_or_not_measured():
    rows = [
        row("closed", 1),
        row("open", 1.0, 0.025),
        row("open", 10.0, 0.036),
        row("closed", 64),
    ]
    assert verdicts(rows) == ["met", "**missed**", "not measured", "met"]
    assert "| 10 per second | 18 ms | 36 ms | - | 200.0 | 0.0% | 40 of 40 |" in result_table(rows)


@pytest.mark.parametrize(
    "changes", [{"ran_dry": 0.01}, {"complete": 39}, {"first_audio_s": None}, {"complete": 0}]
)
def test_nobody_may_run_dry_or_be_cut_off(changes):
    assert verdicts([row("open", 20.0, **changes)])[2] == "**missed**"


@pytest.mark.parametrize(
    "changes", [{"audio_s_per_s": 199.9}, {"audio_s_per_s": None}, {"complete": 39}]
)
def test_throughput_counts_whole_requests(changes):
    assert verdicts([row("closed", 64, **changes)])[3] == "**missed**"
