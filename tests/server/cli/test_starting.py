"""Where each stage runs, and how many replicas it has by default."""

from __future__ import annotations

import pytest

from server.cli.commands import starting
from server.cli.commands.starting import build_deployment, stage_placement
from server.config.settings import Settings, SettingsError
from stages.contract.roles import Role


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(starting, "num_cores", lambda: 2)


def test_the_setting_of_a_stage_overrides_the_one_for_all_stages():
    settings = Settings(
        replicas=3,
        gpus=1.0,
        dtype="bfloat16",
        executor="process",
        stages={"talker": {"replicas": 2, "gpus": 0.0, "executor": "thread"}},
    )
    talker, thinker = (stage_placement(settings, role) for role in (Role.TALKER, Role.THINKER))
    assert (talker.replicas, talker.gpus, talker.dtype) == (2, 0.0, "bfloat16")
    assert (thinker.replicas, thinker.gpus, thinker.dtype) == (3, 1.0, "bfloat16")
    assert (talker.executor, thinker.executor) == ("thread", "process")


@pytest.mark.usefixtures("two_cores")
def test_talker_and_code2wav_have_two_replicas_by_default():
    settings = Settings(device="cpu")
    roles = (Role.THINKER, Role.TALKER, Role.CODE2WAV)
    counts = [stage_placement(settings, role).replicas for role in roles]
    assert counts == [1, 2, 2]


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("role", [Role.TALKER, Role.CODE2WAV])
@pytest.mark.parametrize(
    ("given", "of_stage"),
    [
        ({"replicas": 1}, {}),
        ({}, {"replicas": 1}),
        ({"executor": "process"}, {}),
        ({}, {"executor": "process"}),
        ({}, {"device": "cuda:0"}),
        ({"model": "fake"}, {}),
    ],
)
def test_other_settings_give_one_replica(role, given, of_stage):
    settings = Settings(device="cpu", stages={role: of_stage}, **given)
    assert stage_placement(settings, role).replicas == 1


@pytest.mark.parametrize("role", [Role.TALKER, Role.CODE2WAV])
def test_one_core_gives_one_replica(monkeypatch, role):
    monkeypatch.setattr(starting, "num_cores", lambda: 1)
    assert stage_placement(Settings(device="cpu"), role).replicas == 1


def test_only_one_model_is_built():
    with pytest.raises(SettingsError, match="name one model, not fake, piper-joe"):
        build_deployment(Settings(model="fake, piper-joe"))
