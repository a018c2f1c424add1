"""Where the files of the thinker's converted model are, and its settings.

Torch-free, so that the server can read prompts with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A directory with the converted model."""

    directory: Path

    @property
    def weights(self) -> Path:
        """Float32 tensors under their Hugging Face names (safetensors)."""
        return self.directory / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """A `tokenizers` file, its control tokens marked as special."""
        return self.directory / "tokenizer.json"

    @property
    def settings(self) -> Path:
        """`ModelSettings` as JSON."""
        return self.directory / "settings.json"

    def read_settings(self) -> ModelSettings:
        """What was written beside the weights."""
        return ModelSettings(**json.loads(self.settings.read_text("utf-8")))


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What is not a tensor: `transformer` has the fields of `TransformerConfig`."""

    transformer: dict[str, int | float | bool]
    chat_template: str
    end_tokens: list[int]
