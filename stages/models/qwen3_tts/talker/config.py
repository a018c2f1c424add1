"""Settings of the talker stage of Qwen3-TTS. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.contract.model import DEFAULT_MAX_RUNNING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class QwenTalkerConfig:
    """`folder` is the checkpoint's.

    At most `max_rows` sequences run at once, fewer if a GPU has no memory for them. Each has at
    most `max_tokens` positions. At most `max_loaded_voices` copied voices stay in memory. `dtype`
    auto is float32 on a CPU and bfloat16 elsewhere.
    """

    folder: Path
    device: str = "auto"
    dtype: str = "auto"
    max_rows: int = DEFAULT_MAX_RUNNING
    max_tokens: int = 4096
    max_loaded_voices: int = 8
