"""The capacity simulation against queueing theory, and how outcomes change with the load."""

import pytest

from server.cli.capacity_simulation import PlannedStage, SimulatedLoad, parse_stage, simulate
from server.cli.main import main

ONE_CHUNK = {"stream_s": 1.0, "first_s": 1.0, "chunk_s": 1.0}


def test_first_audio_of_a_lone_stream_takes_the_sum_of_the_first_steps():
    stages = [PlannedStage("talker", 1, 5, 20), PlannedStage("code2wav", 1, 3, 30)]
    outcome = simulate(stages, SimulatedLoad(rate=0.05, run_s=200, first_s=0.2, chunk_s=0.5))
    assert outcome.first_audio_ms[0] == pytest.approx(5 + 4 + 3 + 6, abs=0.1)
    assert outcome.ran_dry == 0


@pytest.mark.parametrize(("rate", "busy"), [(5, 0.5), (8, 0.8)])
def test_the_busy_share_is_the_rate_times_the_step_time(rate, busy):
    stages = [PlannedStage("only", 1, 100, 0, batch=1)]
    outcome = simulate(stages, SimulatedLoad(rate=rate, run_s=4000, **ONE_CHUNK))
    assert outcome.busy["only"] == pytest.approx(busy, rel=0.05)


def test_more_workers_shorten_the_queue_and_share_the_work():
    load = SimulatedLoad(rate=9, run_s=500, **ONE_CHUNK)
    alone = simulate([PlannedStage("only", 1, 100, 0, batch=1)], load)
    shared = simulate([PlannedStage("only", 3, 100, 0, batch=1)], load)
    assert shared.first_audio_ms[1] < alone.first_audio_ms[1] / 3
    assert shared.busy["only"] == pytest.approx(alone.busy["only"] / 3, rel=0.05)


def test_playback_runs_dry_if_a_stage_is_slower_than_real_time():
    assert (
        simulate([PlannedStage("only", 1, 0, 1100)], SimulatedLoad(rate=0.02, run_s=500)).ran_dry
        == 1
    )
    assert (
        simulate([PlannedStage("only", 1, 0, 200)], SimulatedLoad(rate=0.02, run_s=500)).ran_dry
        == 0
    )


def test_the_silence_of_an_underrun_counts_as_playback():
    """Each of ten chunks of 1 s takes 2 s, so the last one arrives 18 s after the first."""
    stages = [PlannedStage("only", 1, 0, 2000, batch=64)]
    load = SimulatedLoad(rate=0.002, stream_s=10, first_s=1.0, chunk_s=1.0, run_s=100_000)
    outcome = simulate(stages, load)
    assert outcome.concurrent == pytest.approx(outcome.num_streams * 19 / 100_000, rel=0.05)


def test_concurrent_streams_are_the_rate_times_their_length():
    outcome = simulate(
        [PlannedStage("only", 4, 0, 1)], SimulatedLoad(rate=20, stream_s=10, run_s=300)
    )
    assert outcome.concurrent == pytest.approx(200, rel=0.07)


def test_ten_cells_behave_like_one_cell_with_a_tenth_of_the_load():
    stages = [PlannedStage("only", 2, 2, 20)]
    one = simulate(stages, SimulatedLoad(rate=4, run_s=400))
    ten = simulate(stages, SimulatedLoad(rate=40, run_s=400, cells=10))
    assert ten.concurrent == pytest.approx(10 * one.concurrent, rel=0.1)
    assert ten.busy["only"] == pytest.approx(one.busy["only"], rel=0.1)


def test_the_same_seed_gives_the_same_outcome():
    stages = [PlannedStage("only", 2, 1, 10)]
    assert simulate(stages, SimulatedLoad(rate=5)) == simulate(stages, SimulatedLoad(rate=5))


@pytest.mark.parametrize("text", ["talker", "talker=1", "talker=0:1:1", "talker=1:-1:1", "=1:1:1"])
def test_an_invalid_stage_is_refused(text):
    with pytest.raises(ValueError, match=r"talker|="):
        parse_stage(text)


def test_the_command_prints_the_outcome(capsys):
    stages = ["--stage", "talker=2:2:20", "--stage", "code2wav=2:2:25:4"]
    assert main(["plan", "--rate", "4", "--run-s", "20", *stages]) == 0
    printed = capsys.readouterr().out
    assert "first audio" in printed
    assert "talker" in printed
