"""A matrix whose values need four bits, for products with a few rows on a CPU.

Files of ggml's Q4_1 kind hold, of each 32 values in a row, a step, a least value and 4 bits each.
Such a matrix is found by its values, whatever it was stored as since, and packed for torch's own
kernel again: a product with one row is bound by memory, and reads a quarter of what bfloat16 does.
The kernel takes the scales in bfloat16, so results are as close as in bfloat16, and not closer.
Measured on one thread (AMD EPYC, AVX512), SmolLM2's layers: 1 row 4.2 ms, where bfloat16 takes 8.5;
4 rows 5.9 and 9.2; 8 rows 10.9 both; 12 rows 15.7 and 12.1. On two threads 8 rows 6.5 and 6.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

MAX_ROWS = 8  # beyond, the unpacking of each weight for so many rows costs more than it saves
_GROUP = 32
_STEPS = 15
_CLOSE = 1e-3  # of a step


class FourBits:
    """`x @ weight.T` for x [rows, inputs] in bfloat16, at most `MAX_ROWS` of them."""

    def __init__(self, codes: Tensor, scales: Tensor, least: Tensor) -> None:
        """Codes 0 to 15 [outputs, inputs]; a value is least + code * scale, of each 32 inputs."""
        self._packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.int(), 1)
        middle = least + 8 * scales
        self._scales = torch.stack([scales, middle], -1).transpose(0, 1).contiguous().bfloat16()

    def __call__(self, x: Tensor) -> Tensor:
        """[rows, inputs] → [rows, outputs], in bfloat16."""
        return torch._weight_int4pack_mm_for_cpu(x, self._packed, _GROUP, self._scales)


def find_four_bits(weight: Tensor) -> FourBits | None:
    """The matrix [outputs, inputs] if this machine has the kernel and the values need no more."""
    outputs, inputs = weight.shape
    if weight.device.type != "cpu" or outputs % 16 or inputs % _GROUP:
        return None
    if torch.backends.cpu.get_cpu_capability() != "AVX512":
        return None
    groups = weight.float().view(outputs, -1, _GROUP)
    least, most = groups.aminmax(dim=-1)
    scales = (most - least) / _STEPS
    exact = (groups - least[..., None]) / scales[..., None].clamp_min(torch.finfo().tiny)
    codes = exact.round()
    if (exact - codes).abs().max() > _CLOSE:
        return None
    return FourBits(codes.view(outputs, inputs), scales, least)
