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
    """Settings of the decoders of Piper voices.

    `voices` are the `.onnx` files, by name, that are loaded at the start. Other voices are loaded
    when a request first needs them. At most `max_loaded_voices` stay loaded.
    `device` is cpu, cuda:N or auto. `dtype` is float32, bfloat16 (close to float32, not equal) or
    auto. `auto` is bfloat16 on a CPU that multiplies it (AVX512-BF16), else float32.
    """

    voices: Mapping[str, Path] = field(default_factory=bundled_voices)
    device: str = "auto"
    dtype: str = "auto"
    max_loaded_voices: int = 8
