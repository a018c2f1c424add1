"""Convolutions equal torch's for any length, whatever lengths came before."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from stages.kernels.convolution import Conv, Depthwise, Parameters
from stages.weights.onnx import OnnxWeights

CHANNELS = 32


def parameters_of(weight, dilation):
    bias = np.linspace(-1, 1, len(weight), dtype=np.float32)
    onnx = OnnxWeights({"c.weight": weight, "c.bias": bias}, {"c": {"dilations": [dilation]}})
    return Parameters(onnx, torch.device("cpu"), torch.float32)


def expected(rows, parameters, dilation, **shape):
    weight, bias = parameters.tensor("c.weight"), parameters.tensor("c.bias")
    return functional.conv1d(rows.T[None], weight, bias, dilation=dilation, **shape)[0].T


@pytest.mark.parametrize(("size", "dilation"), [(3, 1), (7, 12)])
def test_one_convolution_serves_signals_of_any_length(size, dilation):
    generator = np.random.default_rng(1)
    weight = generator.normal(0, 0.1, (CHANNELS, CHANNELS, size)).astype(np.float32)
    parameters = parameters_of(weight, dilation)
    conv = parameters.conv("c")
    for num_rows in (1, 40, 300, 1, 5000):
        rows = torch.from_numpy(generator.normal(size=(num_rows + 2 * conv.reach, CHANNELS)))
        rows = rows.float()
        plus = rows[conv.reach : conv.reach + num_rows]
        plain = expected(rows, parameters, dilation)
        torch.testing.assert_close(conv(rows), plain, rtol=0, atol=1e-4)
        torch.testing.assert_close(conv(rows, plus), plain + plus, rtol=0, atol=1e-4)


def test_a_convolution_that_strides_reads_what_lies_between():
    generator = np.random.default_rng(3)
    weight = generator.normal(0, 0.1, (4, CHANNELS, 10)).astype(np.float32)
    parameters = parameters_of(weight, 1)
    conv = Conv(*parameters.convolution("c"), stride=4)
    rows = torch.from_numpy(generator.normal(size=(400 + 2 * conv.reach, CHANNELS))).float()
    wanted = expected(rows, parameters, 1, stride=4)
    assert (conv.reach, wanted.shape) == (3, (100, 4))
    torch.testing.assert_close(conv(rows), wanted, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dilation", [1, 3, 9])
def test_channels_are_convolved_each_by_itself(dilation):
    generator = np.random.default_rng(2)
    weight = generator.normal(size=(CHANNELS, 1, 3)).astype(np.float32)
    parameters = parameters_of(weight, dilation)
    rows = torch.from_numpy(generator.normal(size=(7, CHANNELS))).float()
    padded = {"groups": CHANNELS, "padding": dilation}
    wanted = expected(rows, parameters, dilation, **padded)
    padded_rows = functional.pad(rows, (0, 0, dilation, dilation))
    torch.testing.assert_close(Depthwise(parameters, "c")(padded_rows), wanted, rtol=0, atol=1e-5)
