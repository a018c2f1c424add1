"""Whether both stages of a small checkpoint come up in two threads at once, as in the server.

One stage captures its graphs while the other creates library handles and captures its own. A race
between them shows only sometimes, so they come up several times.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from stages.models.qwen3_tts.code2wav.config import QwenCode2WavConfig
from stages.models.qwen3_tts.code2wav.stage import QwenCode2WavStage
from stages.models.qwen3_tts.talker.config import QwenTalkerConfig
from stages.models.qwen3_tts.talker.stage import QwenTalkerStage
from tests.qwen3_tts import sizes
from tests.qwen3_tts.checkpoint import write_checkpoint

if TYPE_CHECKING:
    from benchmarks.gpu.first_run import Run

TURNS = 3


def measure(run: Run) -> None:
    """Start both stages `TURNS` times. Raises what a stage raised, after the last turn."""
    errors: list[BaseException] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_checkpoint(Path(temporary) / "small", "custom_voice", sizes.SAMPLED)
        for turn in range(TURNS):
            begin_s = time.perf_counter()
            raised = start_both(folder, str(run.device))
            took_s = round(time.perf_counter() - begin_s, 2)
            outcome = {"took_s": took_s, "errors": [repr(error) for error in raised]}
            run.record(f"both stages up at once, turn {turn}", outcome)
            errors += raised
    if errors:
        raise errors[0]


def start_both(folder: Path, device: str) -> list[BaseException]:
    """Load and warm both stages, each in a thread. Returns what they raised."""
    stages = (
        QwenTalkerStage(QwenTalkerConfig(folder, device, max_rows=16, max_tokens=1024)),
        QwenCode2WavStage(QwenCode2WavConfig(folder / "speech_tokenizer", device)),
    )
    with ThreadPoolExecutor(len(stages)) as threads:
        starts = [threads.submit(start, stage) for stage in stages]
    return [error for each in starts if (error := each.exception()) is not None]


def start(stage: QwenTalkerStage | QwenCode2WavStage) -> None:
    """What a worker does before the first request."""
    stage.load()
    stage.warm()
