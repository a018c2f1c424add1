"""The decoder against the public package, cut, in batches, and with broken checkpoints."""

import json
import shutil
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from stages.contract.errors import CheckpointError
from stages.models.qwen3_tts.code2wav.streaming_state import StreamingState
from tests.stages.models.qwen3_tts.code2wav.driver import random_codes

NUM_FRAMES = 30  # several windows of the small codec's attention


def decoded(decoder, codes):
    """All frames decoded in one call."""
    return decoder.decode(codes[None], decoder.new_state())[0]


def assert_same(samples, expected):
    # Other matrix shapes sum in another order.
    torch.testing.assert_close(samples, expected, rtol=0, atol=3e-5)


def test_samples_are_the_packages(decoder, values):
    expected = values["code2wav.samples"]
    assert 0.1 < expected.abs().max() < 1  # neither silence nor clipped
    assert_same(decoded(decoder, values["code2wav.codes"]), expected)


@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, NUM_FRAMES - 1), max_size=8))
def test_streamed_equals_whole_for_any_cuts(decoder, cuts):
    codes, state, parts = random_codes(0, NUM_FRAMES), decoder.new_state(), []
    for begin, end in pairwise([0, *sorted(cuts), NUM_FRAMES]):
        parts.append(decoder.decode(codes[None, begin:end], state)[0])
        state.positions.fill_(end)
    assert_same(torch.cat(parts), decoded(decoder, codes))


def test_frame_by_frame_equals_decoded(decoder):
    codes, state, parts = random_codes(1, NUM_FRAMES), decoder.new_state(), []
    for frame in range(NUM_FRAMES):
        state.positions.fill_(frame)
        parts.append(decoder.decode(codes[None, frame : frame + 1], state)[0])
    assert_same(torch.cat(parts), decoded(decoder, codes))


def test_streams_at_different_positions_in_one_call_give_the_same_samples_as_alone(decoder):
    """One stream at its beginning, one inside the attention window, one beyond it."""
    starts, states = (0, 3, 20), []
    for seed, start in enumerate(starts):
        state = decoder.new_state()
        if start:
            decoder.decode(random_codes(seed, NUM_FRAMES)[None, :start], state)
        states.append(state)
    together = StreamingState(torch.cat([state.values for state in states]), torch.tensor(starts))
    codes = [random_codes(seed, NUM_FRAMES)[start : start + 4] for seed, start in enumerate(starts)]
    samples = decoder.decode(torch.stack(codes), together)
    for seed, start in enumerate(starts):
        expected = decoded(decoder, random_codes(seed, NUM_FRAMES)[: start + 4])
        assert_same(samples[seed], expected[start * decoder.config.hop :])


def test_bfloat16_is_close(load_decoder, codec, decoder):
    codes = random_codes(2, NUM_FRAMES)
    samples = decoded(load_decoder(codec, torch.bfloat16), codes)
    expected = decoded(decoder, codes)
    noise = (samples - expected).square().mean() / expected.square().mean()
    assert noise < 0.1  # rounding errors grow more in a random network than in a trained one


@pytest.fixture
def broken(codec, tmp_path):
    """A function that writes the codec again with changed tensors or configuration."""

    def write(change_tensors=None, **decoder_config):
        folder = shutil.copytree(codec, tmp_path / "codec")
        tensors = load_file(folder / "model.safetensors")
        if change_tensors is not None:
            change_tensors(tensors)
        save_file(tensors, folder / "model.safetensors")
        config = json.loads((folder / "config.json").read_text())
        top = {key: decoder_config.pop(key) for key in list(decoder_config) if key in config}
        config["decoder_config"] |= decoder_config
        (folder / "config.json").write_text(json.dumps({**config, **top}))
        return folder

    return write


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_act", "gelu"),
        ("rope_scaling", {"rope_type": "yarn"}),
        ("attention_bias", True),
        ("num_key_value_heads", 1),
        ("model_type", "qwen3_tts_tokenizer_25hz"),
        ("output_sample_rate", 48_000),
        ("decode_upsample_rate", 960),
    ],
)
def test_an_unsupported_configuration_is_refused(load_decoder, broken, name, value):
    with pytest.raises(CheckpointError, match=name):
        load_decoder(broken(**{name: value}))


def test_a_missing_tensor_is_named(load_decoder, broken):
    name = "decoder.upsample.1.1.dwconv.conv.weight"
    with pytest.raises(CheckpointError, match=name):
        load_decoder(broken(lambda tensors: tensors.pop(name)))


def test_a_tensor_of_the_wrong_shape_is_named(load_decoder, broken):
    with pytest.raises(CheckpointError, match="cluster_usage"):
        load_decoder(broken(codebook_size=128))


def test_an_unknown_tensor_is_named(load_decoder, broken):
    name = "decoder.pre_transformer.layers.0.self_attn.q_norm.weight"
    folder = broken(lambda tensors: tensors.update({name: torch.ones(20)}))
    with pytest.raises(CheckpointError, match="q_norm"):
        load_decoder(folder)


def test_missing_sizes_have_the_packages_defaults(load_decoder, broken, decoder):
    folder = broken()
    config = json.loads((folder / "config.json").read_text())
    for name in ("upsample_rates", "upsampling_ratios", "rms_norm_eps", "num_quantizers"):
        config["decoder_config"].pop(name)
    config["decoder_config"]["num_quantizers"] = 6
    (folder / "config.json").write_text(json.dumps(config))
    assert load_decoder(folder).config == decoder.config
