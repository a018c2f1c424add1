"""The bfloat16 decoder is within 38 dB of float32 for each text."""

import pytest
import torch

from benchmarks.texts import text
from stages.kernels.convolution import Parameters
from stages.models.piper.hifigan import HifiGan
from stages.models.piper.vits import Scales, Vits, phrase_noise
from stages.models.piper.voice_file import bundled_voices, read_voice
from stages.text.phoneme_ids import phoneme_ids
from stages.text.phonemizer import make_phonemizer, phonemes
from stages.weights.onnx import read_onnx

pytestmark = pytest.mark.model


def test_bfloat16_is_near_float32():
    (path,) = bundled_voices().values()
    onnx, voice = read_onnx(path), read_voice(path)
    phonemizer = make_phonemizer("espeak", "en-us")
    cpu = torch.device("cpu")
    vits = Vits(Parameters(onnx, cpu, torch.float32))
    exact, near = (
        HifiGan(Parameters(onnx, cpu, dtype)) for dtype in (torch.float32, torch.bfloat16)
    )
    for number in range(6):
        ids = phoneme_ids(phonemes(text(number)[:90], phonemizer)[0], voice.id_map)
        latents = vits.encode(ids, Scales(0.667, 1, 0.8), phrase_noise(number, 0))
        frames = vits.flow(latents, latents.num_frames)
        sound, other = (model.decode(frames, 0, len(frames)) for model in (exact, near))
        ratio = sound.square().sum() / (sound - other).square().sum()
        assert 10 * torch.log10(ratio) >= 38
