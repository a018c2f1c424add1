"""A voice's settings, and its weights out of the ONNX file."""

import json
from pathlib import Path

import numpy as np
import pytest

from stages.contract.pipeline import VoiceSpec
from stages.models.piper.voice_file import bundled_voices, list_voices, read_voice, voice_file
from stages.weights.onnx import read_onnx


def test_settings_come_from_the_file(toy_voice):
    voice = read_voice(toy_voice())
    assert (voice.language, voice.espeak_voice, voice.rate_hz) == ("de-DE", "de", 16000)
    assert (voice.noise_scale, voice.length_scale, voice.noise_w) == (0.5, 1.25, 0.75)
    assert voice.id_map["a"] == (5,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"phoneme_type": "pinyin"}, "'pinyin' is not supported"),
        ({"audio": {}}, "sample_rate"),
        ({"phoneme_id_map": None}, "not a settings file of Piper"),
    ],
)
def test_settings_that_are_not_usable_say_why(toy_voice, changes, said):
    with pytest.raises(ValueError, match=said):
        read_voice(toy_voice(**changes))


def test_speakers_are_named_in_the_order_of_their_numbers(toy_voice):
    several = {"num_speakers": 3, "speaker_id_map": {"Bo": 1, "Al": 0}}
    assert read_voice(toy_voice(**several)).speakers == ("Al", "Bo", "2")
    assert read_voice(toy_voice()).speakers == ()


def test_voices_are_listed_with_what_is_known_of_them(toy_voice):
    path = toy_voice()
    path.write_bytes(b"weights")
    path.with_name("MODEL_CARD").write_text("# Card\n\n* License: CC0\n")
    (listed,) = list_voices({"anna": read_voice(path)})
    assert listed == VoiceSpec("anna", "de-DE", "toy", 16000, (), "CC0", voice_file(path))


def test_a_card_beside_several_voices_is_nobodys(toy_voice):
    path = toy_voice()
    path.with_name("MODEL_CARD").write_text("License: CC0")
    for name in ("a.onnx", "b.onnx"):
        path.with_name(name).write_bytes(b"weights")
    assert read_voice(path).licence == ""


def field(number, value):
    """One protobuf field: an int as a varint, anything else by length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    low, high = value & 127, value >> 7
    return bytes([low | 128]) + varint(high) if high else bytes([low])


def tensor(name, values, packed):
    shape = values.shape
    dims = (
        field(1, b"".join(map(varint, shape))) if packed else b"".join(field(1, n) for n in shape)
    )
    return dims + field(2, 1) + field(8, name) + field(9, values.tobytes())


@pytest.mark.parametrize("packed", [False, True])
def test_weights_without_a_name_get_their_modules(tmp_path, packed):
    weight = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    strides = field(8, varint(300)) if packed else field(8, 300)
    node = field(1, "x") + field(1, "onnx::Conv_1") + field(3, "/dec/ups.0/Conv") + field(4, "Conv")
    node += field(5, field(1, "strides") + strides)
    indices = field(2, 7) + field(8, "axes") + field(9, b"\0" * 8)
    graph = field(1, node) + field(5, tensor("onnx::Conv_1", weight, packed)) + field(5, indices)
    path = tmp_path / "toy.onnx"
    path.write_bytes(field(1, 8) + field(7, graph))
    onnx = read_onnx(path)
    assert list(onnx.tensors) == ["dec.ups.0.weight"]
    np.testing.assert_array_equal(onnx.tensors["dec.ups.0.weight"], weight)
    assert onnx.convolutions["dec.ups.0"] == {"strides": [300]}
    assert onnx.hop == 300


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
def test_what_no_voice_can_be_is_refused_when_it_is_read(tmp_path, key, value):
    settings = json.loads(Path(f"{bundled_voices()['joe']}.json").read_text())
    path = tmp_path / "odd.onnx"
    Path(f"{path}.json").write_text(json.dumps(settings | {key: value}))
    with pytest.raises(ValueError, match=r"voice|speakers"):
        read_voice(path)
