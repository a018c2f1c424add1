"""How long the talker takes for a frame, by streams: `python -m benchmarks.gpu.talker`.

The talker of the real size with random weights. Each step runs as in the stage: the loop of the
code predictor (`predict`) and the talker's forward pass (`advance`), on a GPU as CUDA graphs. Each
stream has a prompt of 128 positions. Prints for each number of streams the median milliseconds of
both halves, and the audio seconds per second that follow.
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
from stages.kernels.cuda_graphs import CudaCapture
from stages.kernels.device import enter_stream, pick_device
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.talker.decode_batch import DecodeBatch
from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.step_runner import StepRunner
from stages.weights.safetensors import Weights

if TYPE_CHECKING:
    from collections.abc import Callable

STREAMS = (1, 8, 16, 32, 64)
FRAME_S = 0.08
POSITIONS = 128
MAX_TOKENS = 1024
WARM_CALLS = 2


@torch.inference_mode()
def load(folder: Path, device: torch.device, dtype: torch.dtype, num_rows: int) -> StepRunner:
    """Load the talker of a checkpoint, with a prompt in each of `num_rows` rows."""
    weights = Weights(folder)
    talker = TalkerModel(read_config(folder), weights, device, dtype)
    predictor = CodePredictor(talker, weights, dtype)
    batch = DecodeBatch(talker, predictor, num_rows, MAX_TOKENS)
    runner = StepRunner(batch, predictor, CudaCapture(device) if device.type == "cuda" else None)
    runner.warm()
    shape = (POSITIONS, talker.config.talker.hidden_size)
    embeddings = torch.randn(shape).to(device, talker.dtype)
    for row in range(num_rows):
        batch.claim(row, POSITIONS)
        last = batch.prefill([Span(Slot(batch.slab, row), 0, POSITIONS)], [embeddings.clone()])
        batch.begin(row, last[0], row)
    batch.active.fill_(True)
    return runner


@torch.inference_mode()
def time_half(work: Callable[[], None], device: torch.device, calls: int) -> float:
    """Median seconds of a call that runs alone."""
    times_s = []
    for call in range(WARM_CALLS + calls):
        begin_s = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if call >= WARM_CALLS:
            times_s.append(time.perf_counter() - begin_s)
    return median(times_s)


def main() -> None:
    """Write a checkpoint, load its talker, measure it."""
    parser = argparse.ArgumentParser("benchmarks.gpu.talker")
    parser.add_argument("--size", default="1.7B", choices=TALKERS)
    parser.add_argument("--streams", nargs="*", type=int, default=STREAMS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="auto", choices=("auto", "float32", "bfloat16"))
    parser.add_argument("--calls", type=int, default=50)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = pick_device(options.device)
    enter_stream(device)
    auto = "float32" if device.type == "cpu" else "bfloat16"  # as the stage chooses
    dtype = getattr(torch, auto if options.dtype == "auto" else options.dtype)
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_checkpoint(Path(temporary) / "checkpoint", options.size)
        runner = load(folder, device, dtype, max(options.streams))
    # Every call moves the positions on by one; none may pass the attention length.
    length = POSITIONS + len(options.streams) * (WARM_CALLS + options.calls) + 1
    for count in options.streams:
        predict_s = time_half(lambda: runner.predict(count), device, options.calls)  # noqa: B023 - called at once
        advance_s = time_half(lambda: runner.advance(count, length), device, options.calls)  # noqa: B023
        audio_s_per_s = count * FRAME_S / (predict_s + advance_s)
        print(
            f"{count:3} streams: predict {1000 * predict_s:8.2f} ms, advance"
            f" {1000 * advance_s:8.2f} ms, {audio_s_per_s:7.2f} audio s/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
