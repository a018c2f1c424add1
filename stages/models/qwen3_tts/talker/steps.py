"""The two halves of the talker's step, over as many rows and as far as is needed.

On a GPU they come from CUDA graphs, one for each of a few numbers of rows and reaches of attention,
the next larger of which serves; all are captured before the first request, as a capture in between
would be heard. Elsewhere they run as they are written.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from stages.kernels.cuda_graphs import sizes_up_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.talker.frames import FrameTable
    from stages.models.qwen3_tts.talker.model import CodePredictor

MIN_REACH = 256  # positions


class Steps:
    """Steps of one table."""

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
