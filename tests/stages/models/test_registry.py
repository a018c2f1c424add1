"""Models by name and by their own config.json, several in one deployment."""

import json
from pathlib import Path

import pytest

from stages.contract.errors import CheckpointError
from stages.contract.pipeline import AUDIO_ONLY, TEXT_AND_AUDIO, TEXT_ONLY, Medium
from stages.models.registry import build, expanded, family_of
from stages.runtime.placement import BuildConfig


@pytest.fixture
def config(tmp_path):
    return BuildConfig(tmp_path)


def test_a_group_stands_for_its_models_and_each_counts_once():
    names = ["piper-joe", "smollm2-joe"]
    assert expanded(["embedded"]) == names
    assert expanded(["piper-joe", "embedded", "fake"]) == [*names, "fake"]


@pytest.mark.model
def test_two_families_in_one_deployment_have_workers_with_names_of_their_own(model_cache_dir):
    deployment = build(["embedded", "fake"], BuildConfig(model_cache_dir))
    assert [model.model_id for model in deployment.models] == [
        "piper-joe",
        "smollm2-joe",
        "fake-speech",
        "fake-chat",
    ]
    names = [stage.name for stage in deployment.stages]
    assert names[:3] == ["talker", "code2wav", "thinker"]
    assert names[3:] == ["thinker@fake", "talker@fake", "code2wav@fake"]


def test_a_model_has_a_pipeline_for_each_kind_of_request(config):
    speech, chat = build(["fake"], config).models
    assert {(each.inputs, each.outputs) for each in speech.pipelines} == {(Medium.TEXT, AUDIO_ONLY)}
    assert {(each.inputs, each.outputs) for each in chat.pipelines} == {
        (Medium.TEXT, TEXT_ONLY),
        (Medium.TEXT, TEXT_AND_AUDIO),
    }


def test_an_unknown_name_says_which_names_there_are(config):
    with pytest.raises(CheckpointError, match=r"no model 'nowhere'.*embedded, piper-joe"):
        build(["fake", "nowhere"], config)


def test_a_checkpoint_of_an_unknown_kind_says_which_kinds_there_are(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mystery"}))
    with pytest.raises(CheckpointError, match=r"model_type 'mystery'.*qwen3_tts"):
        family_of(str(tmp_path))
