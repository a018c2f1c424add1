"""The text side equals onnxruntime on the same file, and its flow is exact in windows."""

from itertools import count

import pytest
import torch

from stages.kernels import torchscript
from stages.models.piper.flow import Flow
from stages.models.piper.hifigan import HifiGan
from stages.models.piper.vits import Scales, Vits, phrase_noise
from stages.text.phoneme_ids import phoneme_ids
from stages.text.phonemizer import make_phonemizer, phonemes

pytestmark = pytest.mark.model

TEXTS = [
    "A",
    "Hello, world!",
    "The birch canoe slid on the smooth planks.",
    "These days a chicken leg is a rare dish; rice is often served in round bowls, they say.",
]


@pytest.fixture(scope="module")
def decoder(parameters):
    return HifiGan(parameters)


@pytest.fixture(scope="module")
def ids_of(voice):
    phonemizer = make_phonemizer("espeak", "en-us")
    return lambda text: phoneme_ids(phonemes(text, phonemizer)[0], voice.id_map)


@pytest.mark.parametrize("length_scale", [1.0, 0.7])
@pytest.mark.parametrize("text", TEXTS)
def test_samples_equal_the_reference(vits, decoder, reference, ids_of, text, length_scale):
    expected = torch.tensor(reference(ids_of(text), length_scale))
    latents = vits.encode(ids_of(text), Scales(0, length_scale, 0), phrase_noise(0, 0))
    assert latents.num_frames * 256 == len(expected)
    frames = vits.flow(latents, latents.num_frames)
    samples = decoder.decode(frames, 0, len(frames))
    torch.testing.assert_close(samples, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("num_frames", [1, 9, 120])
@pytest.mark.parametrize("size", [1, 7, 24, 100])
def test_the_flow_in_slices_equals_the_whole(parameters, num_frames, size):
    # In float64, where rounding is not mistaken for a wrong border.
    flow = Flow(type(parameters)(parameters.onnx, parameters.device, torch.float64))
    prior = torch.randn(num_frames, 192, dtype=torch.float64, generator=phrase_noise(1, 2))
    whole = flow.begin(None).feed(prior, last=True)
    stream = flow.begin(None)
    parts = [
        stream.feed(rows, last=end >= num_frames)
        for rows, end in zip(prior.split(size), count(size, size), strict=False)
    ]
    assert len(whole) == num_frames
    torch.testing.assert_close(torch.cat(parts), whole, rtol=0, atol=1e-10)


def test_compiled_networks_give_what_they_give_in_python(vits, parameters, ids_of, monkeypatch):
    def frames(model):
        latents = model.encode(ids_of(TEXTS[3]), Scales(0.667, 1, 0.8), phrase_noise(1, 2))
        parts = []
        while not latents.is_complete:
            parts.append(model.flow(latents, 16))
        return torch.cat(parts)

    monkeypatch.setattr(torchscript, "CAN_COMPILE", False)
    in_python = Vits(parameters)
    monkeypatch.undo()
    assert torch.equal(frames(vits), frames(in_python))


def test_noise_depends_on_seed_and_number_only(vits, ids_of):
    def frames(seed, number):
        noise = phrase_noise(seed, number)
        latents = vits.encode(ids_of("Hello"), Scales(0.667, 1, 0.8), noise)
        return vits.flow(latents, latents.num_frames)

    assert torch.equal(frames(3, 1), frames(3, 1))
    assert not any(
        torch.equal(frames(3, 1)[:9], frames(*key)[:9]) for key in [(3, 2), (4, 1), (1, 3)]
    )


def test_a_phrase_is_the_same_in_slices_of_any_size(vits, ids_of):
    def frames(size):
        latents = vits.encode(ids_of(TEXTS[2]), Scales(0.667, 1, 0.8), phrase_noise(1, 2))
        parts = []
        while not latents.is_complete:
            parts.append(vits.flow(latents, size))
        return torch.cat(parts)

    whole = frames(1000)
    assert all(torch.equal(frames(size), whole) for size in (8, 19, 64))
