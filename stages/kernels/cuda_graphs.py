"""Work that is the same each time, done again without the Python that described it: CUDA graphs.

What such a graph saves is the host's part of hundreds of kernels. The work has to read and write
memory that never moves, and must not bring anything to the host.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


_one_at_a_time = threading.Lock()


class Capture(Protocol):
    """Makes, of work on memory that never moves, something that does the same work again."""

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """What repeats `work`, whose effects of now do not count."""


class CudaCapture:
    """See Capture; graphs share one pool of memory, as they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        # Torch's own for captures is one for all threads, on the device that was first. And there
        # are 32 streams in all: with one for each graph, two threads would share some.
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """See Capture."""
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            work()  # kernels are chosen and workspaces made outside of the capture
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Other stages compute in threads of their own meanwhile, which must not end the capture;
        # but to begin one waits for the whole device, and a capture cannot be waited for.
        with (
            _one_at_a_time,
            torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"),
        ):
            work()
        return graph.replay


def sizes_up_to(largest: int, smallest: int = 1) -> list[int]:
    """Doubling from `smallest`; the last is `largest`."""
    sizes = []
    size = smallest
    while size < largest:
        sizes.append(size)
        size *= 2
    return [*sizes, largest]
