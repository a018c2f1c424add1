"""CUDA graphs: record GPU work once and replay it without the Python code that described it.

A graph saves the host's time to launch hundreds of kernels. The work must read and write memory
that never moves, and must not copy anything to the host.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


_one_capture_at_a_time = threading.Lock()


class Capture(Protocol):
    """Turns work on memory that never moves into a function that repeats it."""

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """A function that repeats `work`. This call may run the work too; ignore its results."""


class CudaCapture:
    """Captures CUDA graphs. They share one memory pool, because they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()
        # Torch has one capture stream for all threads, on the device that was used first. And it
        # has 32 streams in all: with one for each graph, two threads would share some.
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """Run `work` once, capture it, and return the function that replays the graph."""
        stream = self._stream
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            work()  # chooses kernels and allocates workspaces before the capture
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Other stages compute in other threads meanwhile; "thread_local" keeps them from breaking
        # the capture. Beginning a capture waits for the whole device, which fails while another
        # thread captures: hence the lock.
        with (
            _one_capture_at_a_time,
            torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"),
        ):
            work()
        return graph.replay


def sizes_up_to(largest: int, smallest: int = 1) -> list[int]:
    """`smallest`, doubled again and again, and last `largest`."""
    sizes = []
    size = smallest
    while size < largest:
        sizes.append(size)
        size *= 2
    return [*sizes, largest]
