"""The decoder equals the textbook form, and joined chunks of any size equal the whole."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from stages.kernels.convolution import Parameters
from stages.models.piper import hifigan
from stages.models.piper.hifigan import HifiGan


def parameters_of(onnx, dtype=torch.float64):
    return Parameters(onnx, torch.device("cpu"), dtype)


def frames_of(num_frames, channels=6):
    generator = torch.Generator().manual_seed(num_frames)
    return torch.randn(num_frames, channels, dtype=torch.float64, generator=generator)


def textbook(onnx, frames):
    """HiFi-GAN as its paper has it: [channels, time], all at once."""
    tensors = {name: torch.tensor(value).double() for name, value in onnx.tensors.items()}

    def conv(signal, name):
        weight, dilation = tensors[f"{name}.weight"], onnx.convolutions[name]["dilations"][0]
        pad = (weight.shape[2] - 1) // 2 * dilation
        bias = tensors.get(f"{name}.bias")
        return functional.conv1d(signal, weight, bias, padding=pad, dilation=dilation)

    def block(signal, name):
        for step in range(2):
            kinds = [k for k in ("convs", "convs1", "convs2") if f"{name}.{k}.0.weight" in tensors]
            change = signal
            for kind in kinds:
                change = conv(functional.leaky_relu(change, 0.1), f"{name}.{kind}.{step}")
            signal = signal + change
        return signal

    signal = conv(frames.T[None], "dec.conv_pre")
    for up in range(2):
        shape = onnx.convolutions[f"dec.ups.{up}"]
        signal = functional.conv_transpose1d(
            functional.leaky_relu(signal, 0.1),
            tensors[f"dec.ups.{up}.weight"],
            tensors[f"dec.ups.{up}.bias"],
            stride=shape["strides"][0],
            padding=shape["pads"][0],
        )
        signal = sum(block(signal, f"dec.resblocks.{2 * up + n}") for n in range(2)) / 2
    return torch.tanh(conv(functional.leaky_relu(signal, 0.01), "dec.conv_post"))[0, 0]


@given(num_frames=st.integers(1, 60))
def test_the_whole_equals_the_textbook_form(toy, num_frames):
    frames = frames_of(num_frames)
    decoder = HifiGan(parameters_of(toy))
    samples = decoder.decode(frames, 0, num_frames)
    assert decoder.hop == 8
    torch.testing.assert_close(samples, textbook(toy, frames).float(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("num_frames", [1, 16, 17, 40, 90])
def test_a_chunk_in_tiles_equals_the_textbook_form(toy, monkeypatch, num_frames):
    monkeypatch.setattr(hifigan, "MAX_TILE_BYTES", 1)
    frames = frames_of(num_frames)
    samples = HifiGan(parameters_of(toy)).decode(frames, 0, num_frames, num_frames + 20)
    torch.testing.assert_close(samples, textbook(toy, frames).float(), rtol=0, atol=1e-6)


@given(num_frames=st.integers(1, 90), data=st.data())
def test_chunks_equal_the_whole_for_any_cuts(toy, num_frames, data):
    frames = frames_of(num_frames)
    decoder = HifiGan(parameters_of(toy))
    cuts = sorted(data.draw(st.sets(st.integers(1, num_frames), max_size=6)) | {0, num_frames})
    padding = data.draw(st.integers(0, 20))
    parts = []
    for begin, end in pairwise(cuts):
        near = frames[max(0, begin - decoder.reach) : end + decoder.reach]
        at = min(begin, decoder.reach)
        parts.append(decoder.decode(near, at, at + end - begin, end - begin + padding))
    whole = decoder.decode(frames, 0, num_frames)
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-6)


def test_the_reach_is_no_larger_than_it_has_to_be(toy):
    decoder = HifiGan(parameters_of(toy))
    frames = frames_of(101)
    changed = frames.clone()
    changed[50] += 1
    differs = decoder.decode(frames, 0, 101) != decoder.decode(changed, 0, 101)
    touched = (differs.nonzero()[:, 0] // decoder.hop - 50).abs().max()
    assert touched == decoder.reach


@pytest.mark.model
@pytest.mark.parametrize("size", [16, 48, 64])
def test_the_bundled_voice_in_chunks_equals_the_whole(parameters, size):
    decoder = HifiGan(parameters)
    frames = frames_of(150, channels=192).float()
    whole = decoder.decode(frames, 0, 150)
    parts = [decoder.decode(frames, at, min(150, at + size), size) for at in range(0, 150, size)]
    assert decoder.reach == 11
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-5)


@pytest.mark.model
def test_bfloat16_is_close(onnx, parameters):
    frames = frames_of(60, channels=192)
    exact = HifiGan(parameters).decode(frames, 0, 60)
    rounded = HifiGan(parameters_of(onnx, torch.bfloat16)).decode(frames, 0, 60)
    noise = (rounded - exact).square().mean() / exact.square().mean()
    assert 10 * torch.log10(noise) < -25
