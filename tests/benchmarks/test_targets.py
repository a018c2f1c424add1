"""Figures out of results, and what counts as worse."""

import json

import pytest

from benchmarks.clause import first_clause
from benchmarks.compare import baseline_of, changes, main
from benchmarks.readme import BEGIN, END, README, updated
from benchmarks.systems import OURS, PIPER
from benchmarks.table import markdown
from benchmarks.targets import TARGETS, figures, summary
from benchmarks.texts import text


def row(system, at, first_audio_s, throughput, peak_mb=512.0):
    spread = {"median": first_audio_s, "p95": 1.0, "p99": 1.0, "max": 2 * first_audio_s}
    return {
        "system": system,
        "load": "burst",
        "at": at,
        "admission": None,
        "first_audio_s": spread,
        "first_audio_slowest_s": 2 * first_audio_s,
        "heard_s": spread,
        "gap_s": None,
        "real_time_factor": spread,
        "ran_dry": 0.0,
        "ran_dry_buffered": 0.0,
        "refused": 0.0,
        "failed": 0.0,
        "audio_s_per_s": throughput,
        "cpu_s_per_audio_s": 0.1,
        "peak_mb": peak_mb,
    }


MACHINE = {
    "processor": "some",
    "cores": 2,
    "flags": ["avx2"],
    "revision": "abc",
    "date": "today",
    "load_before": 0.1,
    "matrix_gflops": {"float32 x1": 53.0, "float32 x2": 106.0},
}
RESULTS = {
    "machine": MACHINE,
    "speech": [
        row(PIPER, 1, 0.6, 18.0),
        row(PIPER, 8, 4.0, 20.0),
        row(OURS, 1, 0.03, 20.0),
        row(OURS, 8, 0.2, 25.0),
    ],
    "capacity": [
        {
            "system": OURS,
            "listeners": 23,
            "listeners_without_buffer": 20,
            "reference_audio_s_per_s": 20.0,
            "beyond": {"refused": 0.3, "ran_dry": 0.1, "ran_dry_buffered": 0.0},
        }
    ],
}


def test_figures_are_ratios_to_the_rival_of_the_same_run():
    found = figures(RESULTS)

    assert found["first audio alone / piper"] == pytest.approx(0.05)
    assert found["slowest first audio of 8 / piper"] == pytest.approx(0.1)
    assert found["throughput at 8 / piper"] == 1.25
    assert found["listeners / piper's throughput"] == pytest.approx(1.15)
    assert found["memory at 8, GB"] == 0.5
    assert "throughput at 32 / piper" not in found


def test_every_figure_has_a_target():
    assert set(figures(RESULTS)) <= {target.name for target in TARGETS}


def test_the_summary_says_yes_no_and_not_measured():
    lines = {line[:48].strip(): line for line in summary(RESULTS).splitlines()}

    assert lines["first audio alone / piper"].endswith("yes")
    assert lines["throughput at 8 / piper"].endswith("yes (aim 1.4: no)")
    assert lines["admitted and ran dry beyond capacity"].endswith("yes")
    assert "not measured" in lines["throughput at 32 / piper"]
    assert "125% of what the matrix units allow" in summary(RESULTS)


def test_tables_are_made_of_what_there_is():
    assert f"| {OURS} | 8 | 200 / 1000 / 1000 / 400 |" in markdown(RESULTS)
    assert "| 23 | 20 | 20.0 | 30% | 10%, 0% |" in markdown(RESULTS)


def test_worse_is_more_where_less_is_better_and_less_where_more_is():
    before = {"first audio alone / piper": 0.1, "throughput at 8 / piper": 1.0}
    now = {"first audio alone / piper": 0.15, "throughput at 8 / piper": 2.0}

    found = changes(now, before)

    assert found["first audio alone / piper"] == pytest.approx(0.5)
    assert found["throughput at 8 / piper"] == pytest.approx(-0.5)


def test_nothing_left_where_more_is_better_is_worse_than_anything():
    name = "listeners / piper's throughput"

    assert changes({name: 0.0}, {name: 1.1}) == {name: float("inf")}


def test_comparing_fails_only_where_something_got_worse(tmp_path):
    results, baseline = tmp_path / "results.json", tmp_path / "baseline.json"
    results.write_text(json.dumps(RESULTS))
    recorded = baseline_of(RESULTS)
    baseline.write_text(json.dumps(recorded))
    assert main([str(results), str(baseline)]) == 0

    recorded["ratios"]["throughput at 8 / piper"] = 2.0
    baseline.write_text(json.dumps(recorded))
    assert main([str(results), str(baseline)]) == 1


def test_the_baseline_holds_ratios_and_no_absolute_figures():
    assert "memory at 8, GB" not in baseline_of(RESULTS)["ratios"]


def test_comparing_with_nothing_recorded_says_so(tmp_path, capsys):
    results = tmp_path / "results.json"
    results.write_text(json.dumps(RESULTS))

    assert main([str(results), str(tmp_path / "none.json")]) == 0
    assert "no baseline yet" in capsys.readouterr().out


def test_a_run_goes_into_the_readme_and_the_next_one_takes_its_place():
    readme = f"above\n{BEGIN}\nold\n{END}\nbelow\n"

    once = updated(readme, RESULTS)

    assert f"| {OURS} | 30 ms | 200 / 400 ms | 25.0 | 512 / - MB | 23 |" in once
    assert "old" not in once
    assert once.startswith("above\n")
    assert once.endswith("\nbelow\n")
    assert updated(once, RESULTS) == once


def test_the_readme_has_a_place_for_the_run():
    assert updated(README.read_text(), RESULTS)
    with pytest.raises(ValueError, match="no place"):
        updated("", RESULTS)


def test_texts_are_all_different_and_about_as_long():
    texts = [text(number) for number in range(240)]

    assert len(set(texts)) == 240
    assert all(160 <= len(each) <= 200 for each in texts)


def test_the_first_clause_ends_with_the_token_that_holds_its_last_character():
    words = ["The sea", " is wide", " and deep", ",", " they", " say", "."]
    clause = first_clause([(float(k), word) for k, word in enumerate(words)])

    assert clause.text == "The sea is wide and deep,"
    assert clause.last_token_s == 3.0


def test_a_text_without_a_break_is_one_clause_and_nothing_is_none():
    assert first_clause([(1.0, "Yes"), (2.0, ".")]).last_token_s == 2.0
    assert first_clause([]) is None


def test_a_chat_counts_as_the_server_comes():
    rows = [
        {
            "dtype": dtype,
            "delay_over_speech": delay,
            "tokens_per_s": rate,
            "together_tokens_per_s": 3 * rate,
        }
        for dtype, delay, rate in (("float32", 1.4, 50.0), ("bfloat16", 1.2, 40.0))
    ]
    chat = {"llama.cpp": {"tokens_per_s": 100.0}, "rows": rows, "own format": "bfloat16"}
    assert figures({"chat": chat}) == {
        "voice after the first clause / speech": 1.2,
        "voice after the first clause / speech, float32": 1.4,
        "tokens per second alone / llama.cpp": 0.4,
        "tokens per second of 8 / llama.cpp alone": 1.2,
    }
