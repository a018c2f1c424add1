"""Settings of the code2wav stage of Qwen3-TTS. Does not import torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class QwenCode2WavConfig:
    """`folder` is the codec's: `speech_tokenizer` inside the checkpoint.

    `dtype` is float32, bfloat16 (close to float32, not equal), or auto, which is float32.
    """

    folder: Path
    device: str = "auto"
    dtype: str = "auto"
