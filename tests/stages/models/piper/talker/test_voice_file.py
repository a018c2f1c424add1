"""The settings of a voice, and the weights of the bundled one."""

import json
from pathlib import Path

import pytest

from stages.contract.model import VoiceSpec
from stages.models.piper.voice_file import bundled_voices, list_voices, read_voice, voice_file
from stages.weights.onnx import read_onnx


def test_settings_come_from_the_file(toy_voice):
    voice = read_voice(toy_voice())
    assert (voice.language, voice.espeak_voice, voice.rate_hz) == ("de-DE", "de", 16000)
    assert (voice.noise_scale, voice.length_scale, voice.noise_w) == (0.5, 1.25, 0.75)
    assert voice.id_map["a"] == (5,)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"phoneme_type": "pinyin"}, "'pinyin' is not supported"),
        ({"audio": {}}, "sample_rate"),
        ({"phoneme_id_map": None}, "not a settings file of Piper"),
    ],
)
def test_unusable_settings_are_refused_with_the_reason(toy_voice, changes, reason):
    with pytest.raises(ValueError, match=reason):
        read_voice(toy_voice(**changes))


def test_speakers_are_named_in_the_order_of_their_numbers(toy_voice):
    several = {"num_speakers": 3, "speaker_id_map": {"Bo": 1, "Al": 0}}
    assert read_voice(toy_voice(**several)).speakers == ("Al", "Bo", "2")
    assert read_voice(toy_voice()).speakers == ()


def test_voices_are_listed_with_their_properties(toy_voice):
    path = toy_voice()
    path.write_bytes(b"weights")
    path.with_name("MODEL_CARD").write_text("# Card\n\n* License: CC0\n")
    (listed,) = list_voices({"anna": read_voice(path)})
    assert listed == VoiceSpec("anna", "de-DE", "toy", 16000, (), "CC0", voice_file(path))


def test_a_card_in_a_folder_of_several_voices_is_ignored(toy_voice):
    path = toy_voice()
    path.with_name("MODEL_CARD").write_text("License: CC0")
    for name in ("a.onnx", "b.onnx"):
        path.with_name(name).write_bytes(b"weights")
    assert read_voice(path).licence == ""


@pytest.mark.model
def test_every_convolution_of_the_bundled_voice_has_its_weight(voice_path):
    onnx = read_onnx(voice_path)
    assert onnx.hop == 256
    assert len(onnx.convolutions) == 132
    assert {f"{module}.weight" for module in onnx.convolutions} <= onnx.tensors.keys()
    assert not [name for name in onnx.tensors if name.startswith("onnx::Conv")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_speakers", 1_000_000_000),
        ("phoneme_id_map", {}),
        ("phoneme_id_map", {"a": [10**6]}),
        ("audio", {"sample_rate": 1}),
        ("inference", {"noise_scale": 0.6, "length_scale": 1e9, "noise_w": 0.8}),
        ("espeak", {"voice": "../../x"}),
    ],
)
def test_impossible_settings_are_refused_when_they_are_read(tmp_path, key, value):
    settings = json.loads(Path(f"{bundled_voices()['joe']}.json").read_text())
    path = tmp_path / "odd.onnx"
    Path(f"{path}.json").write_text(json.dumps(settings | {key: value}))
    with pytest.raises(ValueError, match=r"voice|speakers"):
        read_voice(path)
