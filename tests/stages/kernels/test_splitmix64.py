"""Random bits: those of the published generator, and the same on the host and on a device."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from stages.kernels.splitmix64 import mix, random_bits, uniform


def test_mix_gives_the_outputs_of_the_reference():
    """The first outputs for seed 0 of `splitmix64.c` (Vigna 2015), as unsigned integers."""
    output = mix(torch.tensor(0)).item() % 2**64
    assert output == 0xE220A8397B1DCDAF


@given(st.integers(-(2**70), 2**70), st.integers(0, 10_000))
def test_a_uniform_number_depends_on_seed_and_number(seed, number):
    chance = uniform(seed, number)
    assert 0 <= chance < 1
    assert chance == uniform(seed, number)
    assert chance != uniform(seed + 1, number)
    assert uniform(seed, number + 1) != uniform(seed + 1, number)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 10_000))
def test_the_host_and_a_device_draw_the_same_bits(seed, number):
    (bits,) = random_bits(torch.tensor([seed]), torch.tensor([number])).tolist()
    assert (bits >> 32) % 2**32 == uniform(seed, number) * 2**32
