"""Runs a step that does the same each time: on a GPU from a CUDA graph, elsewhere as it is written.

A graph is captured for each of a few numbers of rows and reaches of attention, the next larger one
serves; what it saves is the host's work for some hundred kernels. All is captured before the first
request (`warm`), as a capture in between would be heard.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.talker.qwen.frames import FrameTable
    from stages.talker.qwen.model import CodePredictor

MIN_REACH = 256  # positions


class Capture(Protocol):
    """Makes, of work on memory that never moves, something that does the same work again."""

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """What repeats `work`, whose effects of now do not count."""


class CudaCapture:
    """See Capture; graphs share one pool of memory, as they never run at the same time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        """See Capture."""
        stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(stream):
            work()  # kernels are chosen and workspaces made outside of the capture
        torch.cuda.current_stream(self._device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # Other stages compute in threads of their own meanwhile; that must not end the capture.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
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


class Steps:
    """The two halves of a step of a table, over as many rows and as far as is needed."""

    def __init__(
        self, table: FrameTable, predictor: CodePredictor, capture: Capture | None
    ) -> None:
        self._table = table
        self._predictor = predictor
        self._capture = capture
        self._row_sizes = sizes_up_to(table.num_rows)
        self._reaches = sizes_up_to(table.max_tokens, min(MIN_REACH, table.max_tokens))
        self._predicts: dict[int, Callable[[], None]] = {}
        self._advances: dict[tuple[int, int], Callable[[], None]] = {}

    @torch.inference_mode()
    def warm(self) -> None:
        """Capture everything. Must run before any row is in use."""
        if self._capture is None:
            return
        table = self._table
        for rows in reversed(self._row_sizes):  # the largest first: its memory serves the others
            self._predictor.prepare(rows)
            self._predicts[rows] = self._capture(partial(table.predict, rows))
            for reach in reversed(self._reaches):
                self._advances[rows, reach] = self._capture(partial(table.advance, rows, reach))

    def predict(self, num_rows: int) -> None:
        """Complete the present frame of at least the first `num_rows` rows."""
        if self._capture is None:
            self._predictor.prepare(num_rows)
            self._table.predict(num_rows)
        else:
            self._predicts[_next(self._row_sizes, num_rows)]()

    def advance(self, num_rows: int, end: int) -> None:
        """Let the talker read it; no row's position is `end` or after."""
        if self._capture is None:
            self._table.advance(num_rows, end)
        else:
            self._advances[_next(self._row_sizes, num_rows), _next(self._reaches, end)]()


def _next(sizes: list[int], needed: int) -> int:
    return next(size for size in sizes if size >= needed)
