"""Reads the JSON files in a model's folder. Torch-free."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stages.contract.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises CheckpointError if the file has none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path} must hold a JSON object")
    return content
