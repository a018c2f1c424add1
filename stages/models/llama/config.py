"""Settings of the thinker stage. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ThinkerConfig:
    """At most `max_batch` requests advance in one step. `dtype` is float32, bfloat16 or auto:
    bfloat16 on a GPU and on a CPU that multiplies it (AVX512-BF16), else float32. Of ended requests
    at most `max_kept_tokens` are kept, for those that go on from them; SmolLM2's take 46 kB each.
    """

    cache_dir: Path
    device: str = "auto"
    dtype: str = "auto"
    max_batch: int = 32
    max_kept_tokens: int = 2048
