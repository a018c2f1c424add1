"""A weight whose values fit in four bits, for products with a few rows on a CPU.

ggml's Q4_1 format stores 32 neighbours of a row as a step size, a least value and 4 bits each. Such
a weight is recognised by its values, whatever dtype it has now, and is packed for torch's four-bit
kernel. A product with one row is bound by memory, and this one reads a quarter of what bfloat16
reads. The kernel takes scales in bfloat16, so results are as close as in bfloat16, not closer.
Measured for SmolLM2's layers on one thread (AMD EPYC, AVX512), four bits against bfloat16: 1 row
4.2 and 8.5 ms, 4 rows 5.9 and 9.2, 8 rows 10.9 both, 12 rows 15.7 and 12.1. On two threads: 8 rows
6.5 and 6.7 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.private_ops import int4_works, multiply_int4, pack_int4

if TYPE_CHECKING:
    from torch import Tensor

MAX_ROWS = 8  # with more rows, unpacking the weights costs more than it saves
_GROUP = 32  # values that share a scale
_NUM_STEPS = 15  # from the least value to the largest
_MAX_ERROR = 1e-3  # in parts of a step


class FourBitWeight:
    """Computes `x @ weight.T` for bfloat16 x [rows, inputs] of at most `MAX_ROWS` rows."""

    def __init__(self, codes: Tensor, scales: Tensor, least: Tensor) -> None:
        """`codes` are 0 to 15 [outputs, inputs]. A value is least + code * scale; both [outputs,
        groups] are shared by 32 inputs."""
        self._packed = pack_int4(codes.int(), 1)
        middle = least + 8 * scales
        self._scales = torch.stack([scales, middle], -1).transpose(0, 1).contiguous().bfloat16()

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, inputs] → [rows, outputs] in bfloat16."""
        y: Tensor = multiply_int4(x, self._packed, _GROUP, self._scales)
        return y


def find_four_bits(weight: Tensor) -> FourBitWeight | None:
    """Pack the weight [outputs, inputs]; None if its values need more than four bits, its shape
    does not fit, or this machine has no such kernel."""
    outputs, inputs = weight.shape
    if weight.device.type != "cpu" or outputs % 16 or inputs % _GROUP:
        return None
    if not int4_works():
        return None
    groups = weight.float().view(outputs, -1, _GROUP)
    least, most = groups.aminmax(dim=-1)
    scales = (most - least) / _NUM_STEPS
    exact = (groups - least[..., None]) / scales[..., None].clamp_min(torch.finfo().tiny)
    codes = exact.round()
    if (exact - codes).abs().max() > _MAX_ERROR:
        return None
    return FourBitWeight(codes.view(outputs, inputs), scales, least)
