"""The files of the thinker's converted model, and its settings.

Torch-free, because the server tokenizes prompts with them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The paths in the directory of a converted model."""

    directory: Path

    @property
    def weights(self) -> Path:
        """Float32 tensors under their Hugging Face names (safetensors)."""
        return self.directory / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """A file of the package `tokenizers`; control tokens are marked as special."""
        return self.directory / "tokenizer.json"

    @property
    def settings(self) -> Path:
        """`ModelSettings` as JSON."""
        return self.directory / "settings.json"

    def read_settings(self) -> ModelSettings:
        """Read the settings file."""
        return ModelSettings(**json.loads(self.settings.read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Everything but tensors. `transformer` has the fields of `TransformerConfig`."""

    transformer: dict[str, int | float | bool]
    chat_template: str
    end_tokens: list[int]
