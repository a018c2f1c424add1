"""How long the talker takes for a frame, by streams: `python -m benchmarks.gpu.talker`.

The talker of the real size with random weights, each step as the stage makes it: the code
predictor's whole loop (`predict`) and the talker's pass (`advance`), on a GPU from their graphs.
Streams hold 128 positions. Prints a line for each number of streams: median milliseconds of both
halves, and audio seconds per second that they come to.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import torch

from benchmarks.gpu.checkpoint import write_checkpoint
from benchmarks.gpu.sizes import TALKERS
from stages.kernels.attention import Span
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = (1, 8, 16, 32, 64)
FRAME_S = 0.08
POSITIONS = 128
WARM_CALLS = 2


@torch.inference_mode()
def fill(stage: QwenTalkerStage, num_rows: int) -> None:
    """Rows that speak, with positions behind them."""
    table, talker = stage._table, stage._talker
    state = torch.randn(POSITIONS, stage._model.talker.hidden_size).to(talker.device, talker.dtype)
    for row in range(num_rows):
        table.claim(row, POSITIONS)
        last = table.read([Span(Slot(table.slab, row), 0, POSITIONS)], [state.clone()])
        table.begin(row, last[0], row)
    table.active[:num_rows] = True


@torch.inference_mode()
def time_half(work: Callable[[], None], device: torch.device, calls: int) -> float:
    """Median seconds of a call, alone."""
    taken = []
    for call in range(WARM_CALLS + calls):
        began = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if call >= WARM_CALLS:
            taken.append(time.perf_counter() - began)
    return median(taken)


def main() -> None:
    """Write, load, time."""
    parser = argparse.ArgumentParser("benchmarks.gpu.talker")
    parser.add_argument("--size", default="1.7B", choices=TALKERS)
    parser.add_argument("--streams", nargs="*", type=int, default=STREAMS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_checkpoint(Path(temporary) / "checkpoint", options.size)
        most = max(options.streams)
        stage = QwenTalkerStage(
            QwenTalkerConfig(folder, options.device, options.dtype, most, max_tokens=1024)
        )
        stage.load()
    stage.warm()
    device = stage._talker.device
    fill(stage, most)
    # Positions grow with every call; so many calls stay within the reach.
    reach = POSITIONS + len(options.streams) * (WARM_CALLS + options.calls) + 1
    for count in options.streams:
        predict_s = time_half(lambda: stage._steps.predict(count), device, options.calls)  # noqa: B023 - called at once
        advance_s = time_half(lambda: stage._steps.advance(count, reach), device, options.calls)  # noqa: B023
        made = count * FRAME_S / (predict_s + advance_s)
        print(
            f"{count:3} streams: predict {1000 * predict_s:8.2f} ms, advance"
            f" {1000 * advance_s:8.2f} ms, {made:7.2f} audio s/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
