"""The file with the stored values of the public package."""

from pathlib import Path

VALUES = Path(__file__).parent / "reference.safetensors"
