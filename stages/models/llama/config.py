"""Settings of the thinker stage. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ThinkerConfig:
    """Settings of the thinker.

    At most `max_batch` requests advance in one step. `dtype` is float32, bfloat16 or auto. `auto`
    is bfloat16 on a GPU and on a CPU that multiplies it (AVX512-BF16), else float32. The prefix
    cache holds at most `max_kept_tokens` tokens of ended requests; one of SmolLM2 takes 46 kB.
    """

    cache_dir: Path
    device: str = "auto"
    dtype: str = "auto"
    max_batch: int = 32
    max_kept_tokens: int = 2048
