"""A linear layer whose weight is laid out once for the machine it runs on.

On a CPU the weight is reordered for oneDNN, which `torch.nn.functional.linear` does not use for
float32. Measured on one thread (AMD EPYC, AVX512): 1 row 25 → 13 ms and 64 rows 143 → 61 ms for
SmolLM2's layers in float32, 14 → 7 and 39 → 32 ms in bfloat16. Elsewhere it is the plain one.
In bfloat16 a weight whose values need only four bits is kept in those too, for a few rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from stages.kernels.int4 import MAX_ROWS, find_four_bits


class Linear:
    """`x @ weight.T + bias`, for a constant `weight` [outputs, inputs]; computed in `dtype`."""

    def __init__(self, weight: Tensor, dtype: torch.dtype, bias: Tensor | None = None) -> None:
        self._dtype = dtype
        self._few = find_four_bits(weight) if dtype == torch.bfloat16 and bias is None else None
        self._bias = None if bias is None else bias.to(dtype)
        self._weight = lay_out(weight.to(dtype))

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, inputs] in any float type → [rows, outputs] in the layer's type."""
        if self._few is not None and len(x) <= MAX_ROWS:
            return self._few(x.bfloat16())
        return product(x.to(self._dtype), self._weight, self._bias)


def lay_out(weight: Tensor) -> Tensor:
    """The weight as `product` wants it: in oneDNN's own layout, where oneDNN is to compute it."""
    if not can_lay_out(weight):
        return weight
    laid_out: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight)
    return laid_out


if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]

    def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """`x @ weight.T + bias`, of a weight from `lay_out`, in the type that all have."""
        if weight.is_mkldnn:
            y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
            return y
        return functional.linear(x, weight, bias)

else:
    product = functional.linear  # type: ignore[assignment]  # TorchScript knows no operations that are not there


def can_lay_out(weight: Tensor) -> bool:
    """Whether oneDNN computes with weights of this kind in a layout of its own."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
