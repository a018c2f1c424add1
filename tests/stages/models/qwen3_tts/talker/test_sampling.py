"""Codes drawn on the device follow the distribution that the settings ask for."""

import pytest
import torch

from stages.kernels.splitmix64 import random_bits
from stages.models.qwen3_tts.talker.model_config import SamplingConfig
from stages.models.qwen3_tts.talker.sampling import choose, penalised


def test_codes_come_as_often_as_their_probability_says():
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 3.0]).expand(20_000, 5)
    chance = random_bits(torch.arange(20_000), torch.zeros(20_000, dtype=torch.int64))
    codes = choose(logits, chance, SamplingConfig(0.8, 0, 1.0))
    found = torch.bincount(codes, minlength=5) / len(codes)
    torch.testing.assert_close(found, (logits[0] / 0.8).softmax(0), rtol=0, atol=0.01)


def test_the_codes_of_one_seed_are_independent():
    logits = torch.zeros(20_000, 2)
    codes = choose(
        logits, random_bits(torch.tensor(3), torch.arange(20_000)), SamplingConfig(1.0, 0, 1.0)
    )
    pairs = torch.bincount(2 * codes[:-1] + codes[1:], minlength=4) / len(codes)
    torch.testing.assert_close(pairs, torch.full((4,), 0.25), rtol=0, atol=0.015)


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        (SamplingConfig(0.0, 50, 1.0), {4}),
        (SamplingConfig(1.0, 2, 1.0), {4, 0}),
        (SamplingConfig(1.0, 0, 0.6), {4}),  # 0.64 alone
        (SamplingConfig(1.0, 0, 0.65), {4, 0}),
        (SamplingConfig(1.0, 50, 1.0), {0, 1, 2, 3, 4}),
    ],
)
def test_only_what_is_left_of_the_vocabulary_is_drawn(choice, allowed):
    logits = torch.tensor([2.0, 1.0, 0.0, -1.0, 3.0]).expand(4000, 5)
    chance = random_bits(torch.arange(4000), torch.tensor(1))
    assert set(choose(logits, chance, choice).tolist()) == allowed


def test_what_was_said_becomes_less_likely_whatever_its_sign():
    logits = torch.tensor([[2.0, -2.0, 2.0, -2.0]])
    seen = torch.tensor([[True, True, False, False]])
    assert penalised(logits, seen, 2.0).tolist() == [[1.0, -4.0, 2.0, -2.0]]
