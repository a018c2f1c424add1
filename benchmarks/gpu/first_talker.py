"""What the talker takes: capture, prompts, and both halves of a step, by the number of rows.

Everything is measured without cuDNN's attention and, on a GPU, also with it. The talker without it
is kept for the part `together`. The weights are made on the device, so no file of 4 GB is written.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from benchmarks.gpu.checkpoint import LAYOUT
from benchmarks.gpu.first_kernels import record_kernels
from benchmarks.gpu.first_run import cudnn_attention, ms_since, rounded_ms
from benchmarks.gpu.sizes import model_config
from benchmarks.gpu.talker import time_half
from stages.kernels.attention import Span
from stages.kernels.kv_cache import Slot
from stages.models.qwen3_tts.talker.decode_batch import DecodeBatch
from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel
from stages.models.qwen3_tts.talker.model_config import read_config
from stages.models.qwen3_tts.talker.step_runner import StepRunner
from tests.qwen3_tts import checkpoint
from tests.qwen3_tts import sizes as small

if TYPE_CHECKING:
    from torch import Tensor

    from benchmarks.gpu.first_run import Run
    from stages.models.qwen3_tts.talker.model_config import QwenTtsConfig

NUM_ROWS, MAX_TOKENS = 128, 2048  # 30 GB of cache, and twice that while cuDNN's talker is there
TINY_ROWS, TINY_TOKENS = 4, 256
PROMPTS = ((1, 12), (1, 13), (1, 300), (4, 12))  # rows, positions
STEP_ROWS = (1, 16, 64, 128)
POSITIONS = 12  # in the prompt of each row
ATTENTION_LENGTH = 200  # no row gets that far before `fill` runs again


class LayoutWeights:
    """Random weights in a checkpoint's layout: each tensor is made when it is asked for."""

    def __init__(self, layout: dict[str, list[int]], device: torch.device, dtype: torch.dtype):
        self._layout = layout
        self._device = device
        self._dtype = dtype

    def __getitem__(self, name: str) -> Tensor:
        shape = self._layout[name]
        scale = 1.0 if len(shape) == 1 else shape[-1] ** -0.5
        return torch.randn(shape, device=self._device, dtype=self._dtype) * scale

    def check(self, name: str, *shape: int) -> None:
        """Raise AssertionError if the layout has another shape."""
        assert tuple(self._layout[name]) == shape, (name, shape)


@dataclass(frozen=True, slots=True)
class Talker:
    """A talker with all its rows, ready for steps."""

    model: TalkerModel
    batch: DecodeBatch
    step_runner: StepRunner
    num_graphs: int
    warm_s: float

    @property
    def hidden_size(self) -> int:
        """The size of a hidden state."""
        return self.model.config.talker.hidden_size


def measure(run: Run) -> None:
    """Measure the talker with each kind of attention, and keep the one without cuDNN's."""
    for cudnn in (False, True) if run.on_gpu else (False,):
        with cudnn_attention(cudnn):
            talker = new_talker(run, cudnn)
            record_prompts(run, talker, cudnn)
            record_steps(run, talker, cudnn)
            record_kernels(run, lambda: talker.step_runner.predict(1), f"predict(1), cudnn {cudnn}")  # noqa: B023 - called at once
        if not cudnn:
            run.talker = talker


def new_talker(run: Run, cudnn: bool) -> Talker:
    """Make one and capture its graphs; records what that took."""
    free_bytes = torch.cuda.mem_get_info(run.device)[0] if run.on_gpu else 0
    talker = _warm_talker(run)
    left_bytes = torch.cuda.mem_get_info(run.device)[0] if run.on_gpu else 0
    taken = {
        "capture_s": talker.warm_s,
        "num_graphs": talker.num_graphs,
        "memory_gb": round((free_bytes - left_bytes) / 1e9, 1),
    }
    run.record(f"talker, cudnn {cudnn}", taken)
    return talker


@torch.inference_mode()
def _warm_talker(run: Run) -> Talker:
    config, layout = _config_and_layout(run.tiny)
    weights = LayoutWeights(layout, run.device, run.talker_dtype)
    model = TalkerModel(config, weights, run.device, run.talker_dtype)
    predictor = CodePredictor(model, weights, run.talker_dtype)
    num_rows, max_tokens = (TINY_ROWS, TINY_TOKENS) if run.tiny else (NUM_ROWS, MAX_TOKENS)
    batch = DecodeBatch(model, predictor, num_rows, max_tokens)
    capture = run.capture()
    step_runner = StepRunner(batch, predictor, capture)
    run.sync()
    begin_s = time.perf_counter()
    step_runner.warm()
    run.sync()
    warm_s = round(time.perf_counter() - begin_s, 2)
    return Talker(model, batch, step_runner, capture.num_graphs if capture else 0, warm_s)


def _config_and_layout(tiny: bool) -> tuple[QwenTtsConfig, dict[str, list[int]]]:
    model = small.model_config("custom_voice") if tiny else model_config("1.7B")
    layouts = json.loads((checkpoint.LAYOUT if tiny else LAYOUT).read_text())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        checkpoint.write_json(folder / "config.json", model)
        checkpoint.write_json(folder / "generation_config.json", small.SAMPLED)
        return read_config(folder), layouts["custom_voice" if tiny else "1.7B"]


def record_prompts(run: Run, talker: Talker, cudnn: bool) -> None:
    """What each of `PROMPTS` takes the first time, and again."""
    for num_rows, length in PROMPTS:
        length = min(length, talker.batch.max_tokens // 2)
        times = {turn: _prompt_ms(run, talker, num_rows, length) for turn in ("first", "again")}
        run.record(f"prompt of {num_rows} x {length}, cudnn {cudnn}", times)


def _prompt_ms(run: Run, talker: Talker, num_rows: int, length: int) -> dict[str, float]:
    """Milliseconds until the host is free, and until the prefill is done."""
    run.sync()
    begin_s = time.perf_counter()
    prefill(talker, num_rows, length)
    host_ms = ms_since(begin_s)
    run.sync()
    return {"host_ms": host_ms, "all_ms": ms_since(begin_s)}


@torch.inference_mode()
def prefill(talker: Talker, num_rows: int, length: int) -> Tensor:
    """Prefill `length` positions in each of the first rows → their last hidden states."""
    spans = [Span(Slot(talker.batch.slab, row), 0, length) for row in range(num_rows)]
    device, dtype = talker.model.device, talker.model.dtype
    shape = (length, talker.hidden_size)
    embeddings = [torch.randn(shape, device=device, dtype=dtype) for _ in spans]
    return talker.batch.prefill(spans, embeddings)


@torch.inference_mode()
def fill(talker: Talker) -> None:
    """Make all rows active, after a prompt of `POSITIONS`."""
    batch = talker.batch
    last = prefill(talker, 1, POSITIONS)[0]
    for row in range(batch.num_rows):
        batch.claim(row, POSITIONS)
        batch.begin(row, last, row)
    batch.active.fill_(True)


def record_steps(run: Run, talker: Talker, cudnn: bool) -> None:
    """Both halves of a step by the number of rows, and what launching them costs the host."""
    fill(talker)
    for num_rows in STEP_ROWS:
        if num_rows <= talker.batch.num_rows:
            run.record(f"step of {num_rows} rows, cudnn {cudnn}", _step_ms(run, talker, num_rows))
    run.sync()
    begin_s = time.perf_counter()
    step(talker, 1)
    run.record(f"two launches, cudnn {cudnn}", {"host_ms": ms_since(begin_s)})
    run.sync()


def _step_ms(run: Run, talker: Talker, num_rows: int) -> dict[str, float]:
    """Median milliseconds of the halves, `advance` at a short attention length and the longest."""
    runner, longest = talker.step_runner, talker.batch.max_tokens
    halves = {
        "predict_ms": (lambda: runner.predict(num_rows), 20),
        "advance_ms": (lambda: runner.advance(num_rows, ATTENTION_LENGTH), 10),
        "advance_longest_ms": (lambda: runner.advance(num_rows, longest), 5),
    }
    return {
        name: rounded_ms(time_half(half, run.device, calls))
        for name, (half, calls) in halves.items()
    }


@torch.inference_mode()
def step(talker: Talker, num_rows: int) -> None:
    """A whole step of the first rows; on a GPU its work may still run."""
    talker.step_runner.predict(num_rows)
    talker.step_runner.advance(num_rows, ATTENTION_LENGTH)
