"""How many speeches there is memory for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
import torch

from stages.contract.errors import StartError

if TYPE_CHECKING:
    from stages.kernels.kv_cache import CacheShape

log = structlog.get_logger(__name__)

SHARE = 0.8  # of the memory that is free when the weights are loaded


def bytes_of_row(shape: CacheShape, max_tokens: int) -> int:
    """What one sequence's cache takes."""
    numbers = 2 * shape.num_layers * shape.num_kv_heads * shape.head_dim * max_tokens
    return numbers * shape.dtype.itemsize


def rows_that_fit(shape: CacheShape, max_tokens: int, wanted: int) -> int:
    """`wanted`, or as many as a GPU has memory for; StartError where that is none.

    A CPU gives memory when it is first written to, so there it is all.
    """
    if shape.device.type != "cuda":
        return wanted
    free_bytes, _ = torch.cuda.mem_get_info(shape.device)
    return rows_in(int(free_bytes * SHARE), bytes_of_row(shape, max_tokens), wanted)


def rows_in(num_bytes: int, row_bytes: int, wanted: int) -> int:
    """See `rows_that_fit`."""
    rows = min(wanted, num_bytes // row_bytes)
    if rows < 1:
        raise StartError(
            f"a speech needs {row_bytes >> 20} MB of memory, {num_bytes >> 20} are free"
        )
    if rows < wanted:
        log.warning("fewer_speeches_at_once", wanted=wanted, rows=rows)
    return rows
