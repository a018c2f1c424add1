"""Where the public package's values are stored."""

from pathlib import Path

VALUES = Path(__file__).parent / "reference.safetensors"
