"""Weights out of ONNX files: names, packed and unpacked numbers, and incomplete files."""

import numpy as np
import pytest

from stages.weights.onnx import check_onnx, read_onnx
from tests.stages.weights.onnx_writer import field, tensor, varint, write_voice


@pytest.mark.parametrize("packed", [False, True])
def test_weights_without_a_name_get_their_modules(tmp_path, packed):
    weight = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    strides = field(8, varint(300)) if packed else field(8, 300)
    node = field(1, "x") + field(1, "onnx::Conv_1") + field(3, "/dec/ups.0/Conv") + field(4, "Conv")
    node += field(5, field(1, "strides") + strides)
    indices = field(2, 7) + field(8, "axes") + field(9, b"\0" * 8)
    graph = (
        field(1, node) + field(5, tensor("onnx::Conv_1", weight, packed=packed)) + field(5, indices)
    )
    path = tmp_path / "toy.onnx"
    path.write_bytes(field(1, 8) + field(7, graph))
    onnx = read_onnx(path)
    assert list(onnx.tensors) == ["dec.ups.0.weight"]
    np.testing.assert_array_equal(onnx.tensors["dec.ups.0.weight"], weight)
    assert onnx.convolutions["dec.ups.0"] == {"strides": [300]}
    assert onnx.hop == 300


def test_an_incomplete_file_is_refused(tmp_path):
    path = write_voice(tmp_path)
    check_onnx(path)
    for broken in (path.read_bytes()[:-1], path.read_bytes() + b"x", b"\x08", b""):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="not a complete ONNX file"):
            check_onnx(path)
