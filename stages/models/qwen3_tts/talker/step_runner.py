"""Runs the two halves of the decode step over as many rows and positions as are needed.

On a GPU each half is replayed from a CUDA graph. There is one graph for each of a few row counts
and attention lengths; the next larger one is used. All graphs are captured before the first
request, because a capture during decoding would stall every sequence. On a CPU the halves run
directly.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from stages.kernels.cuda_graphs import sizes_up_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from stages.kernels.cuda_graphs import Capture
    from stages.models.qwen3_tts.talker.decode_batch import DecodeBatch
    from stages.models.qwen3_tts.talker.model import CodePredictor

MIN_ATTENTION_LENGTH = 256  # positions, of the smallest graph


class StepRunner:
    """Runs the steps of one batch. Without `capture` they run without graphs."""

    def __init__(
        self, batch: DecodeBatch, predictor: CodePredictor, capture: Capture | None
    ) -> None:
        self._batch = batch
        self._predictor = predictor
        self._capture = capture
        self._row_counts = sizes_up_to(batch.num_rows)
        self._lengths = sizes_up_to(batch.max_tokens, min(MIN_ATTENTION_LENGTH, batch.max_tokens))
        self._predict_graphs: dict[int, Callable[[], None]] = {}
        self._advance_graphs: dict[tuple[int, int], Callable[[], None]] = {}

    @torch.inference_mode()
    def warm(self) -> None:
        """Capture all graphs. Must run before any row is in use."""
        if self._capture is None:
            return
        batch = self._batch
        for rows in reversed(self._row_counts):  # the largest first: its memory serves the others
            self._predictor.prepare(rows)
            self._predict_graphs[rows] = self._capture(partial(batch.predict, rows))
            for length in reversed(self._lengths):
                advance = partial(batch.advance, rows, length)
                self._advance_graphs[rows, length] = self._capture(advance)

    def predict(self, num_rows: int) -> None:
        """Complete the current frame of at least the first `num_rows` rows."""
        if self._capture is None:
            self._predictor.prepare(num_rows)
            self._batch.predict(num_rows)
        else:
            self._predict_graphs[_at_least(num_rows, self._row_counts)]()

    def advance(self, num_rows: int, end: int) -> None:
        """Run the talker over these frames. Every row's position must be less than `end`."""
        if self._capture is None:
            self._batch.advance(num_rows, end)
        else:
            rows, length = _at_least(num_rows, self._row_counts), _at_least(end, self._lengths)
            self._advance_graphs[rows, length]()


def _at_least(needed: int, sizes: list[int]) -> int:
    return next(size for size in sizes if size >= needed)
