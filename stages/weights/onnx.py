"""Reads the weights of a Piper voice out of its ONNX file, without an ONNX or protobuf package.

Field numbers are those of `onnx.proto3` (ModelProto.graph 7; GraphProto node 1, initializer 5;
NodeProto input 1, name 3, op_type 4, attribute 5; AttributeProto name 1, ints 8; TensorProto dims
1, data_type 2, name 8, raw_data 9). Torch's exporter gives some weights anonymous names. The node
that reads such a weight is named after its module, so the weight gets the module's name.
"""

from __future__ import annotations

import math
import mmap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FLOAT = 1
_GRAPH = 7
_CONVOLUTIONS = ("Conv", "ConvTranspose")
_FOLDED = {"Mul": "scale", "Exp": "log_scale"}  # what these nodes of `dp.flows.0` read


@dataclass(frozen=True, slots=True)
class OnnxWeights:
    """Float32 tensors by parameter name ("dec.conv_pre.weight"), and the integer lists of each
    convolution ("dilations", "strides", "pads") by module name."""

    tensors: dict[str, np.ndarray[Any, np.dtype[np.float32]]]
    convolutions: dict[str, dict[str, list[int]]]

    @property
    def hop(self) -> int:
        """Samples per latent frame: the product of the decoder's upsampling strides."""
        ups = (shape for name, shape in self.convolutions.items() if name.startswith("dec.ups."))
        return math.prod(shape["strides"][0] for shape in ups)


def read_onnx(path: Path) -> OnnxWeights:
    """All float32 initialisers of the graph, as views of the file's content."""
    weights = OnnxWeights({}, {})
    names: dict[str, str] = {}
    graph = next(
        value for field, value in _fields(memoryview(path.read_bytes())) if field == _GRAPH
    )
    for field, value in _fields(graph):
        if field == 1:
            _read_node(value, names, weights.convolutions)
        elif field == 5:
            _read_tensor(value, weights.tensors)
    for anonymous in names.keys() & weights.tensors.keys():
        weights.tensors[names[anonymous]] = weights.tensors.pop(anonymous)
    return weights


def check_onnx(path: Path) -> None:
    """Raise ValueError unless the file looks complete: it has a graph and ends with its last field.

    Reads only a few bytes.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at, fields = 0, set()
            while at < len(data):
                key, at = _varint(data, at)
                if key & 7 not in (0, 2):
                    raise ValueError
                size, at = _varint(data, at)
                at += size if key & 7 == 2 else 0
                fields.add(key >> 3)
    except (ValueError, IndexError):
        raise ValueError(f"{path.name} is not a complete ONNX file") from None
    if at != path.stat().st_size or _GRAPH not in fields:
        raise ValueError(f"{path.name} is not a complete ONNX file")


def _read_node(
    node: memoryview, names: dict[str, str], convolutions: dict[str, dict[str, list[int]]]
) -> None:
    fields = list(_fields(node))
    inputs = [_text(value) for field, value in fields if field == 1]
    strings = {field: _text(value) for field, value in fields if field in (3, 4)}
    module = strings.get(3, "").strip("/").rpartition("/")[0].replace("/", ".")
    if strings[4] in _CONVOLUTIONS:
        names |= zip(inputs[1:], (f"{module}.weight", f"{module}.bias"), strict=False)
        convolutions[module] = dict(_ints(value) for field, value in fields if field == 5)
    elif strings[4] == "Gather" and module.endswith(("emb", "emb_g")):
        names[inputs[0]] = f"{module}.weight"
    elif module == "dp.flows.0" and strings[4] in _FOLDED:
        names |= dict.fromkeys(inputs, f"{module}.{_FOLDED[strings[4]]}")


def _ints(attribute: memoryview) -> tuple[str, list[int]]:
    name, values = "", []
    for field, value in _fields(attribute):
        if field == 1:
            name = _text(value)
        elif field == 8:
            values += _repeated(value)
    return name, values


def _read_tensor(
    tensor: memoryview, tensors: dict[str, np.ndarray[Any, np.dtype[np.float32]]]
) -> None:
    shape: list[int] = []
    single: dict[int, Any] = {}
    for field, value in _fields(tensor):
        if field == 1:
            shape += _repeated(value)
        else:
            single[field] = value
    if single[2] == _FLOAT:
        tensors[_text(single[8])] = np.frombuffer(single[9], dtype="<f4").reshape(shape)


def _repeated(value: Any) -> list[int]:
    """The numbers in one entry of a repeated field: one, or all if they are packed."""
    if isinstance(value, int):
        return [value]
    numbers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        numbers.append(number)
    return numbers


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """The number and value of each field: an int, or bytes (string, message, fixed-size number)."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size, at = _varint(message, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview | mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _text(value: memoryview) -> str:
    return bytes(value).decode()
