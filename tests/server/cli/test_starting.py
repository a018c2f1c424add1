"""Where each stage runs, and how many replicas it has by default."""

from __future__ import annotations

import pytest

from server.cli.commands import starting
from server.cli.commands.starting import stage_placement
from server.config.settings import Settings


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(starting, "num_cores", lambda: 2)


def test_the_setting_of_a_stage_overrides_the_one_for_all_stages():
    settings = Settings(
        replicas=3,
        talker_replicas=2,
        gpus=1.0,
        talker_gpus=0.0,
        dtype="bfloat16",
        executor="process",
        talker_executor="thread",
    )
    talker, thinker = stage_placement(settings, "talker"), stage_placement(settings, "thinker")
    assert (talker.replicas, talker.gpus, talker.dtype) == (2, 0.0, "bfloat16")
    assert (thinker.replicas, thinker.gpus, thinker.dtype) == (3, 1.0, "bfloat16")
    assert (talker.executor, thinker.executor) == ("thread", "process")


@pytest.mark.usefixtures("two_cores")
def test_talker_and_code2wav_have_two_replicas_by_default():
    settings = Settings(device="cpu")
    counts = [stage_placement(settings, s).replicas for s in ("thinker", "talker", "code2wav")]
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
def test_other_settings_give_one_replica(stage, given):
    settings = {name.format(stage=stage): value for name, value in given.items()}
    assert stage_placement(Settings(device="cpu", **settings), stage).replicas == 1


@pytest.mark.parametrize("stage", ["talker", "code2wav"])
def test_one_core_gives_one_replica(monkeypatch, stage):
    monkeypatch.setattr(starting, "num_cores", lambda: 1)
    assert stage_placement(Settings(device="cpu"), stage).replicas == 1
