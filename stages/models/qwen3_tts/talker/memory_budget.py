"""How many sequences fit into the memory of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
import torch

from stages.contract.errors import StartError

if TYPE_CHECKING:
    from stages.kernels.kv_cache import CacheShape

log = structlog.get_logger(__name__)

CACHE_SHARE = 0.8  # of the memory that is free after the weights are loaded


def cache_bytes_per_row(shape: CacheShape, max_tokens: int) -> int:
    """The size of the KV cache of one sequence."""
    num_values = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * max_tokens
    return num_values * shape.dtype.itemsize


def num_rows_that_fit(shape: CacheShape, max_tokens: int, wanted: int) -> int:
    """`wanted` rows, or fewer if a GPU has no memory for them. Raises StartError if none fits.

    On a CPU it is always `wanted`: memory is allocated when it is first written to.
    """
    if shape.device.type != "cuda":
        return wanted
    free_bytes, _ = torch.cuda.mem_get_info(shape.device)
    return num_rows_within(
        int(free_bytes * CACHE_SHARE), cache_bytes_per_row(shape, max_tokens), wanted
    )


def num_rows_within(num_bytes: int, row_bytes: int, wanted: int) -> int:
    """How many of `wanted` rows fit into `num_bytes`. Raises StartError if none does."""
    rows = min(wanted, num_bytes // row_bytes)
    if rows < 1:
        raise StartError(
            f"one sequence needs {row_bytes >> 20} MB of GPU memory for its KV cache, but only"
            f" {num_bytes >> 20} MB are available; free some memory or use a smaller model"
        )
    if rows < wanted:
        log.warning("fewer_speeches_at_once", wanted=wanted, rows=rows)
    return rows
