"""Settings of the code2wav stage. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.models.piper.voice_file import bundled_voices

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Code2WavConfig:
    """`voices` are the `.onnx` files, by name, that are loaded at the start; others are when they
    are first spoken, and at most `max_loaded_voices` stay. `device`: cpu, cuda:N or auto. `dtype`:
    float32, bfloat16 (close, not equal) or
    auto: bfloat16 on a CPU that multiplies it (AVX512-BF16), else float32."""

    voices: Mapping[str, Path] = field(default_factory=bundled_voices)
    device: str = "auto"
    dtype: str = "auto"
    max_loaded_voices: int = 8
