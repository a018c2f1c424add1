"""What the parts of `first.py` share: the device, where facts go, and what is kept for later parts.

It does not know what the parts measure.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from stages.kernels.cuda_graphs import CudaCapture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.gpu.first_talker import Talker
    from stages.models.qwen3_tts.code2wav.batch_decoder import BatchDecoder


@dataclass
class Run:
    """One run of the script. Facts are printed, and written to `out`/facts.json, as they come."""

    device: torch.device
    tiny: bool
    out: Path
    talker: Talker | None = None  # kept by the part `talker`
    codecs: dict[str, BatchDecoder] = field(default_factory=dict)  # kept by the part `codec`
    _facts: dict[str, Any] = field(init=False, default_factory=dict)
    _begin_s: float = field(init=False, default_factory=time.perf_counter)

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"

    @property
    def talker_dtype(self) -> torch.dtype:
        """The type that the talker uses on this device."""
        return torch.bfloat16 if self.on_gpu else torch.float32

    def record(self, name: str, fact: Any) -> None:
        """Print a fact and keep it."""
        self._facts[name] = fact
        print(f"[{time.perf_counter() - self._begin_s:6.1f} s] {name}: {fact}", flush=True)
        (self.out / "facts.json").write_text(json.dumps(self._facts, indent=1) + "\n")

    def sync(self) -> None:
        """Wait until the device has done all its work."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def capture(self) -> CountingCapture | None:
        """What captures CUDA graphs, or None on a CPU."""
        return CountingCapture(CudaCapture(self.device)) if self.on_gpu else None


class CountingCapture:
    """Implements `Capture`; knows how many graphs it has captured."""

    def __init__(self, capture: CudaCapture) -> None:
        self._capture = capture
        self.num_graphs = 0

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """See `Capture`."""
        self.num_graphs += 1
        return self._capture(work)


def ms_since(begin_s: float) -> float:
    """Milliseconds since a reading of `time.perf_counter`."""
    return rounded_ms(time.perf_counter() - begin_s)


def rounded_ms(duration_s: float) -> float:
    """Seconds as milliseconds, to a microsecond."""
    return round(1000 * duration_s, 3)


@contextmanager
def cudnn_attention(on: bool) -> Iterator[None]:
    """Allow or forbid cuDNN's attention in this process."""
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(on)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


@contextmanager
def tf32_products(on: bool) -> Iterator[None]:
    """Allow or forbid TF32 in float32 matrix products in this process."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = on
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
