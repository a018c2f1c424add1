"""The decoder against the public package, against itself in pieces and in company, and files that
are not what they should be."""

import json
import shutil
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from stages.contract.errors import CheckpointError
from stages.models.qwen3_tts.code2wav.past import Past

NUM_FRAMES = 30  # several windows of the small codec's attention


def codes_of(seed, num_frames=NUM_FRAMES):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (num_frames, 6), generator=generator)


def whole(decoder, codes):
    return decoder.decode(codes[None], decoder.new_past())[0]


def assert_same(samples, expected):
    # Other matrix shapes sum in another order.
    torch.testing.assert_close(samples, expected, rtol=0, atol=3e-5)


def test_samples_are_the_packages(decoder, values):
    expected = values["code2wav.samples"]
    assert 0.1 < expected.abs().max() < 1  # neither silence nor clipped
    assert_same(whole(decoder, values["code2wav.codes"]), expected)


@settings(max_examples=15, deadline=None)
@given(cuts=st.sets(st.integers(1, NUM_FRAMES - 1), max_size=8))
def test_streamed_equals_whole_for_any_cuts(decoder, cuts):
    codes, past, parts = codes_of(0), decoder.new_past(), []
    for begin, end in pairwise([0, *sorted(cuts), NUM_FRAMES]):
        parts.append(decoder.decode(codes[None, begin:end], past)[0])
        past.positions.fill_(end)
    assert_same(torch.cat(parts), whole(decoder, codes))


def test_frame_by_frame_equals_whole(decoder):
    codes, past, parts = codes_of(1), decoder.new_past(), []
    for frame in range(NUM_FRAMES):
        past.positions.fill_(frame)
        parts.append(decoder.decode(codes[None, frame : frame + 1], past)[0])
    assert_same(torch.cat(parts), whole(decoder, codes))


def test_streams_in_one_call_sound_as_alone_wherever_each_of_them_is(decoder):
    """Three streams, one at its beginning, one within the window, one beyond it."""
    starts, pasts = (0, 3, 20), []
    for seed, start in enumerate(starts):
        past = decoder.new_past()
        if start:
            decoder.decode(codes_of(seed)[None, :start], past)
        pasts.append(past)
    together = Past(torch.cat([past.numbers for past in pasts]), torch.tensor(starts))
    codes = [codes_of(seed)[start : start + 4] for seed, start in enumerate(starts)]
    samples = decoder.decode(torch.stack(codes), together)
    for seed, start in enumerate(starts):
        expected = whole(decoder, codes_of(seed)[: start + 4])
        assert_same(samples[seed], expected[start * decoder.config.hop :])


def test_bfloat16_is_close(load_decoder, codec, decoder):
    codes = codes_of(2)
    samples = whole(load_decoder(codec, torch.bfloat16), codes)
    expected = whole(decoder, codes)
    noise = (samples - expected).square().mean() / expected.square().mean()
    assert noise < 0.1  # a random network makes more of a rounding than a trained one


@pytest.fixture
def broken(codec, tmp_path):
    """Writes the codec again, with other tensors or other configuration."""

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
def test_a_configuration_that_is_not_computed_is_refused(load_decoder, broken, name, value):
    with pytest.raises(CheckpointError, match=name):
        load_decoder(broken(**{name: value}))


def test_a_missing_tensor_is_named(load_decoder, broken):
    name = "decoder.upsample.1.1.dwconv.conv.weight"
    with pytest.raises(CheckpointError, match=name):
        load_decoder(broken(lambda tensors: tensors.pop(name)))


def test_a_tensor_of_another_shape_is_named(load_decoder, broken):
    with pytest.raises(CheckpointError, match="cluster_usage"):
        load_decoder(broken(codebook_size=128))


def test_a_tensor_that_is_not_known_is_named(load_decoder, broken):
    name = "decoder.pre_transformer.layers.0.self_attn.q_norm.weight"
    folder = broken(lambda tensors: tensors.update({name: torch.ones(20)}))
    with pytest.raises(CheckpointError, match="q_norm"):
        load_decoder(folder)


def test_sizes_that_a_configuration_leaves_out_are_the_packages(load_decoder, broken, decoder):
    folder = broken()
    config = json.loads((folder / "config.json").read_text())
    for name in ("upsample_rates", "upsampling_ratios", "rms_norm_eps", "num_quantizers"):
        config["decoder_config"].pop(name)
    config["decoder_config"]["num_quantizers"] = 6
    (folder / "config.json").write_text(json.dumps(config))
    assert load_decoder(folder).config == decoder.config
