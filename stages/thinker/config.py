"""Settings of the thinker stage. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ThinkerConfig:
    """`dtype` is float32, bfloat16 or auto; at most `max_batch` requests advance in one step."""

    cache_dir: Path
    device: str = "auto"
    dtype: str = "auto"
    max_batch: int = 32
