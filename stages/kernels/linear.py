"""A linear layer whose weight is laid out once for the machine it runs on.

On a CPU the weight is reordered for oneDNN, which `torch.nn.functional.linear` does not use for
float32. Measured on one thread (AMD EPYC, AVX512) for SmolLM2's layers: in float32, 1 row takes 13
ms instead of 25, and 64 rows 61 instead of 143; in bfloat16, 7 instead of 14 and 32 instead of 39.
Elsewhere the layer is torch's own. A bfloat16 weight whose values fit in four bits is also kept in
four bits, for inputs of a few rows.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from stages.kernels.int4 import MAX_ROWS, find_four_bits
from stages.kernels.private_ops import linear_works, multiply_linear, reorder_linear


class Linear:
    """`x @ weight.T + bias`, for a constant `weight` [outputs, inputs]; computed in `dtype`."""

    def __init__(self, weight: Tensor, dtype: torch.dtype, bias: Tensor | None = None) -> None:
        self._dtype = dtype
        self._few = find_four_bits(weight) if dtype == torch.bfloat16 and bias is None else None
        self._bias = None if bias is None else bias.to(dtype)
        self._weight = lay_out(weight.to(dtype))

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, inputs] in any float dtype → [rows, outputs] in the layer's dtype."""
        if self._few is not None and len(x) <= MAX_ROWS:
            return self._few(x.bfloat16())
        return product(x.to(self._dtype), self._weight, self._bias)


def lay_out(weight: Tensor) -> Tensor:
    """The weight as `product` takes it: in oneDNN's own layout where oneDNN computes the product,
    else as it is."""
    if weight.device.type != "cpu" or not linear_works(weight.dtype):
        return weight
    laid_out: Tensor = reorder_linear(weight)
    return laid_out


if multiply_linear is not None:

    def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """`x @ weight.T + bias` for a weight from `lay_out`; all have one dtype."""
        if weight.is_mkldnn:
            y: Tensor = multiply_linear(x, weight, bias, "none", [], "")
            return y
        return functional.linear(x, weight, bias)

else:
    # TorchScript refuses to compile an operator that does not exist.
    product = functional.linear  # type: ignore[assignment]
