"""Describes the machine: processor, memory, versions, and the speed of matrix products.

`python -m benchmarks.machine` prints it. The matrix products run in a process of their own.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGES = ("torch", "numpy", "uvicorn", "starlette", "fastapi", "sse-starlette", "httptools")
FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16")
SIZE = 1024
ROUNDS = 7


def describe() -> dict[str, Any]:
    """The machine and its load now, as JSON values."""
    info = Path("/proc/cpuinfo").read_text()
    flags = set(next(line for line in info.splitlines() if line.startswith("flags")).split())
    return {
        "processor": _field(info, "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "flags": [flag for flag in FLAGS if flag in flags],
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in PACKAGES},
        "revision": _revision(),
        "date": time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
        "load_before": os.getloadavg()[0],
        "matrix_gflops": _matrix_gflops(),
    }


def _field(info: str, name: str) -> str:
    return next(line.split(":", 1)[1].strip() for line in info.splitlines() if name in line)


def _revision() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, check=False
    )
    return done.stdout.decode().strip()


def _matrix_gflops() -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.machine", "products"], stdout=subprocess.PIPE, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _products() -> dict[str, float]:
    """GFLOPS of the best of several products of square matrices, on one core and on all cores.

    They use oneDNN, which on AMD is twice as fast in float32 as torch's own product.
    """
    import torch

    from stages.kernels.linear import lay_out, product

    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.ones(SIZE, SIZE, dtype=dtype)
        weight = lay_out(a)
        for threads in (1, len(os.sched_getaffinity(0))):
            torch.set_num_threads(threads)
            best_s = min(_seconds(lambda: product(a, weight, None)) for _ in range(ROUNDS))  # noqa: B023 - called at once
            name = f"{str(dtype).removeprefix('torch.')} x{threads}"
            found[name] = round(2 * SIZE**3 / best_s / 1e9, 1)
    return found


def _seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


if __name__ == "__main__":
    print(json.dumps(_products() if sys.argv[1:] == ["products"] else describe(), indent=1))
