"""What the machine is, and what attention over a new length costs on it.

cuDNN's attention builds a plan for each new shape. The talker meets a new length with almost every
prompt, so the cost of a new length is measured with cuDNN's attention and without.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from typing import TYPE_CHECKING

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend

from benchmarks.gpu.first_run import cudnn_attention, ms_since

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.gpu.first_run import Run

LENGTHS = range(17, 33)
LONGEST = 300
HEADS, HEAD_DIM = 8, 128


def measure(run: Run) -> None:
    """Record the versions, the GPU, and the cost of a new length."""
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda}
    run.record("versions", versions | {"python": sys.version.split()[0]})
    if run.on_gpu:
        record_gpu(run)
    for cudnn in (True, False):
        with cudnn_attention(cudnn):
            record_attention(run, cudnn)


def record_gpu(run: Run) -> None:
    """Its name and memory, and torch's defaults for it."""
    free_bytes, total_bytes = torch.cuda.mem_get_info(run.device)
    gpu = {
        "name": torch.cuda.get_device_name(run.device),
        "free_gb": round(free_bytes / 1e9, 1),
        "total_gb": round(total_bytes / 1e9, 1),
        "cudnn": torch.backends.cudnn.version(),
    }
    run.record("gpu", gpu)
    tf32 = {
        "products": torch.backends.cuda.matmul.allow_tf32,
        "convolutions": torch.backends.cudnn.allow_tf32,
    }
    run.record("tf32 allowed by default", tf32)


def record_attention(run: Run, cudnn: bool) -> None:
    """Which kernel torch chooses, and what a length costs the first and the second time."""
    queries, keys = (
        torch.randn(1, HEADS, n, HEAD_DIM, device=run.device, dtype=torch.bfloat16)
        for n in (2, LONGEST)
    )
    mask = torch.zeros(1, 1, 2, LONGEST, device=run.device, dtype=torch.bfloat16)
    # Torch has no public name for what it would choose.
    choices = {
        "masked": torch._fused_sdp_choice(queries, keys, keys, mask),
        "unmasked": torch._fused_sdp_choice(queries, keys, keys),
    }
    names = {kind: SDPBackend(choice).name for kind, choice in choices.items()}
    run.record(f"attention, cudnn {cudnn}", names)
    first_ms, second_ms = [], []
    for length in LENGTHS:
        for times_ms in (first_ms, second_ms):
            times_ms.append(attend_ms(run, queries, keys[:, :, :length], mask[..., :length]))
    costs = {"first_ms": round(median(first_ms), 3), "second_ms": round(median(second_ms), 3)}
    run.record(f"a new length, cudnn {cudnn}", costs)


def attend_ms(run: Run, queries: Tensor, keys: Tensor, mask: Tensor) -> float:
    """One call of attention, the wait for its result included."""
    run.sync()
    begin_s = time.perf_counter()
    functional.scaled_dot_product_attention(queries, keys, keys, attn_mask=mask)
    run.sync()
    return ms_since(begin_s)
