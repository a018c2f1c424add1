from __future__ import annotations

import pytest

from server.cli.commands import starting
from server.cli.commands.starting import placement_of
from server.config.settings import Settings


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(starting, "num_cores", lambda: 2)


def test_what_is_set_for_a_stage_beats_what_is_set_for_all():
    settings = Settings(
        replicas=3,
        talker_replicas=2,
        gpus=1.0,
        talker_gpus=0.0,
        dtype="bfloat16",
        executor="process",
        talker_executor="thread",
    )
    talker, thinker = placement_of(settings, "talker"), placement_of(settings, "thinker")
    assert (talker.replicas, talker.gpus, talker.dtype) == (2, 0.0, "bfloat16")
    assert (thinker.replicas, thinker.gpus, thinker.dtype) == (3, 1.0, "bfloat16")
    assert (talker.executor, thinker.executor) == ("thread", "process")


@pytest.mark.usefixtures("two_cores")
def test_talker_and_code2wav_have_two_workers_where_nothing_is_set():
    settings = Settings(device="cpu")
    counts = [placement_of(settings, s).replicas for s in ("thinker", "talker", "code2wav")]
    assert counts == [1, 2, 2]


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("stage", ["talker", "code2wav"])
@pytest.mark.parametrize(
    "given",
    [
        {"replicas": 1},
        {"{stage}_replicas": 1},
        {"executor": "process"},
        {"{stage}_executor": "process"},
        {"{stage}_device": "cuda:0"},
        {"model": "fake"},
    ],
)
def test_they_have_one_worker_elsewhere(stage, given):
    chosen = {name.format(stage=stage): value for name, value in given.items()}
    assert placement_of(Settings(device="cpu", **chosen), stage).replicas == 1


@pytest.mark.parametrize("stage", ["talker", "code2wav"])
def test_they_have_one_worker_on_one_core(monkeypatch, stage):
    monkeypatch.setattr(starting, "num_cores", lambda: 1)
    assert placement_of(Settings(device="cpu"), stage).replicas == 1
