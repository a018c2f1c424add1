"""Where each stage runs, and how many replicas it has by default."""

from __future__ import annotations

import pytest

from server.config.settings import Settings
from server.serving.deploy import build_config, build_deployment, speaking_model, stage_placement
from stages.contract.messages import VoiceFile
from stages.contract.model import VoiceSpec
from stages.contract.roles import Role
from stages.models.piper import family
from stages.models.piper.family import FAMILY
from stages.runtime.builder import Builder

STAGES = ("talker", "code2wav")


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr(family, "num_cores", lambda: 2)


def replicas(settings):
    """How many workers each stage of the embedded voice has."""
    builder = Builder(build_config(settings), FAMILY.speech)
    return [len(step.stage.workers) for step in builder.speech_of("piper-joe").steps]


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
    assert replicas(Settings(device="cpu")) == [2, 2]


@pytest.mark.usefixtures("two_cores")
@pytest.mark.parametrize("stage", [0, 1], ids=STAGES)
@pytest.mark.parametrize(
    "given",
    [
        {"replicas": 1},
        {"executor": "process"},
        {"stages": {name: {"replicas": 1} for name in STAGES}},
        {"stages": {name: {"executor": "process"} for name in STAGES}},
        {"stages": {name: {"device": "cuda:0"} for name in STAGES}},
    ],
)
def test_other_settings_give_one_replica(stage, given):
    assert replicas(Settings(**{"device": "cpu", **given}))[stage] == 1


def test_one_core_gives_one_replica(monkeypatch):
    monkeypatch.setattr(family, "num_cores", lambda: 1)
    assert replicas(Settings(device="cpu")) == [1, 1]


def test_a_family_without_a_default_of_its_own_has_one_replica():
    deployment = build_deployment(Settings(model="fake"))
    assert [len(stage.workers) for stage in deployment.stages] == [1, 1, 1]


def test_the_first_model_that_speaks_is_chosen_or_the_one_that_it_speaks_with():
    assert speaking_model(Settings()) == "piper-joe"
    assert speaking_model(Settings(model="fake,piper-joe")) == "fake"
    assert speaking_model(Settings(model="smollm2-joe")) == "piper-joe"


def test_the_sample_speaks_the_voice_that_is_loaded_at_the_start(monkeypatch):
    voices = tuple(VoiceSpec(name, "en", file=VoiceFile(f"/{name}.onnx", 1)) for name in "ab")
    monkeypatch.setattr(family, "current_voices", lambda _: voices)
    for chosen, spoken in ("", "a"), ("b", "b"):
        [model] = build_deployment(Settings(model="piper-joe", voice=chosen, replicas=1)).models
        assert model.sample.params[0].voice == spoken
