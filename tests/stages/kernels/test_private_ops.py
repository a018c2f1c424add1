"""The private operators of torch are checked; public operators replace those that fail."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from stages.kernels import private_ops
from stages.kernels.convolution import Conv
from stages.kernels.int4 import find_four_bits
from stages.kernels.linear import Linear

HAS_ONEDNN = torch.backends.mkldnn.is_available()
CHECKS = (
    private_ops.linear_works,
    private_ops.convolution_works,
    private_ops.int4_works,
    private_ops.find_copy_each,
)


@pytest.fixture
def replaced(monkeypatch):
    """Replace an operator; the checks run again with it, and afterwards without it."""

    def forget():
        for check in CHECKS:
            check.cache_clear()

    def replace(name, operator):
        monkeypatch.setattr(private_ops, name, operator)
        forget()

    yield replace
    monkeypatch.undo()
    forget()


def numbers(*shape):
    generator = np.random.default_rng(1)
    return torch.from_numpy(generator.normal(size=shape).astype(np.float32))


@pytest.mark.skipif(not HAS_ONEDNN, reason="this torch has no oneDNN")
def test_float32_operators_pass_their_checks_with_this_torch():
    assert private_ops.linear_works(torch.float32)
    assert private_ops.convolution_works(torch.float32)


def test_other_dtypes_are_left_to_the_public_operators():
    assert not private_ops.linear_works(torch.float64)
    assert not private_ops.convolution_works(torch.float64)


@pytest.mark.skipif(not HAS_ONEDNN, reason="this torch has no oneDNN")
@pytest.mark.parametrize(
    "operator", [None, lambda x, *_: x.new_zeros(len(x), 48)], ids=["missing", "wrong"]
)
def test_a_linear_layer_without_its_operator_takes_the_public_one(replaced, operator):
    replaced("multiply_linear", operator)
    x, weight = numbers(3, 32), numbers(48, 32)
    with pytest.warns(RuntimeWarning, match="oneDNN linear is not used"):
        linear = Linear(weight, torch.float32)
    torch.testing.assert_close(linear(x), functional.linear(x, weight))


@pytest.mark.skipif(not HAS_ONEDNN, reason="this torch has no oneDNN")
@pytest.mark.parametrize("name", ["reorder_convolution", "convolve", "convolve_add_"])
def test_a_convolution_without_its_operators_takes_the_public_one(replaced, name):
    replaced(name, None)
    weight, bias, rows = numbers(16, 16, 3), numbers(16), numbers(20, 16)
    with pytest.warns(RuntimeWarning, match="oneDNN convolution is not used"):
        conv = Conv(weight, bias)
    expected = functional.conv1d(rows.T[None], weight, bias)[0].T
    torch.testing.assert_close(conv(rows), expected, rtol=0, atol=1e-4)


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512", reason="the kernel needs AVX-512"
)
def test_without_the_four_bit_kernel_no_weight_is_packed(replaced):
    replaced("multiply_int4", None)
    with pytest.warns(RuntimeWarning, match="int4 product is not used"):
        assert find_four_bits(torch.arange(16.0).repeat(64, 2)) is None


@pytest.mark.parametrize("is_missing", [False, True])
def test_tensors_are_copied_with_and_without_the_joint_operator(replaced, is_missing):
    if is_missing:
        replaced("foreach_copy", None)
        with pytest.warns(RuntimeWarning, match="copy of several tensors is not used"):
            copy_each = private_ops.find_copy_each()
    else:
        copy_each = private_ops.find_copy_each()
    targets, sources = [torch.zeros(2), torch.zeros(3)], [numbers(2), numbers(3)]
    copy_each(targets, sources)
    assert all(map(torch.equal, targets, sources))
