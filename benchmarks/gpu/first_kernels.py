"""How many kernels some work is, and how long they take, from torch's profiler."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.gpu.first_run import Run

NUM_LARGEST = 12


@torch.inference_mode()
def record_kernels(run: Run, work: Callable[[], None], name: str) -> None:
    """Record the number of kernels, their sum, and the time from the first to the last of them.

    On a CPU it counts operations instead, nested ones too.
    """
    activity = ProfilerActivity.CUDA if run.on_gpu else ProfilerActivity.CPU
    kind = DeviceType.CUDA if run.on_gpu else DeviceType.CPU
    with profile(activities=[activity]) as profiled:
        work()
        run.sync()
    kernels = [event for event in profiled.events() if event.device_type == kind]
    if not kernels:
        run.record(f"{name}, kernels", "none seen by the profiler")
        return
    us_by_name: Counter[str] = Counter()
    for event in kernels:
        us_by_name[event.name[:60]] += event.time_range.elapsed_us()
    end_us = max(event.time_range.end for event in kernels)
    begin_us = min(event.time_range.start for event in kernels)
    totals = {
        "num_kernels": len(kernels),
        "sum_us": round(us_by_name.total()),
        "span_us": round(end_us - begin_us),
    }
    run.record(f"{name}, kernels", totals)
    largest = {kernel: round(us) for kernel, us in us_by_name.most_common(NUM_LARGEST)}
    run.record(f"{name}, largest kernels in us", largest)
