"""Four-bit weights: recognised by their values, multiplied about as exactly as bfloat16."""

import pytest
import torch

from stages.kernels.int4 import MAX_ROWS, find_four_bits
from stages.kernels.linear import Linear

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="the kernel needs AVX-512"
)


def four_bits(outputs=64, inputs=96):
    """A Q4_1 weight: 16 values above a least one for each 32 in a row; one group is constant."""
    draw = torch.Generator().manual_seed(1)
    codes = torch.randint(16, (outputs, inputs // 32, 32), generator=draw)
    codes[..., 0], codes[..., 1] = 0, 15
    scales = torch.rand(outputs, inputs // 32, 1, generator=draw).half().float()
    scales[0, 0] = 0
    least = -8 * torch.rand(outputs, inputs // 32, 1, generator=draw).half().float()
    return (least + codes * scales).view(outputs, inputs)


@pytest.mark.parametrize("rows", [1, MAX_ROWS])
def test_a_product_is_close(rows):
    weight = four_bits()
    x = torch.randn(rows, 96, generator=torch.Generator().manual_seed(2)).bfloat16()
    want = x.float() @ weight.T
    ours = find_four_bits(weight)(x).float()
    assert (ours - want).norm() / want.norm() < 0.01


def test_few_rows_and_many_rows_give_nearly_the_same():
    linear = Linear(four_bits(), torch.bfloat16)
    x = torch.randn(MAX_ROWS + 1, 96, generator=torch.Generator().manual_seed(3))
    many, few = linear(x).float()[:MAX_ROWS], linear(x[:MAX_ROWS]).float()
    assert (many - few).norm() / many.norm() < 0.01


@pytest.mark.parametrize(
    "weight",
    [
        torch.randn(64, 96, generator=torch.Generator().manual_seed(4)),
        four_bits() + torch.eye(64, 96) / 100,
        four_bits(outputs=60),
        four_bits()[:, :80],
    ],
    ids=["any values", "a few values between", "outputs", "inputs"],
)
def test_other_weights_are_not_packed(weight):
    assert find_four_bits(weight) is None
