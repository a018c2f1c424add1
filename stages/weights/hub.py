"""Finds a model's files: in a folder, or on the Hugging Face hub, downloaded to its cache once.

A model that is complete in the cache loads without a network. Torch-free.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stages.contract.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fetch(Protocol):
    """Downloads a model of the hub. Raises OSError or ValueError if it cannot."""

    def __call__(self, name: str, patterns: Sequence[str], *, local_only: bool) -> str:
        """The folder with the files that match `patterns`. `local_only` uses only the cache."""


def snapshot(name: str, patterns: Sequence[str], *, local_only: bool) -> str:
    """A `Fetch` by the package huggingface-hub, with its cache and its settings."""
    from huggingface_hub import snapshot_download

    return snapshot_download(name, allow_patterns=list(patterns), local_files_only=local_only)


def model_folder(
    name: str, patterns: Sequence[str], needed: Sequence[str], fetch: Fetch = snapshot
) -> Path:
    """The folder `name`, or that of the hub's model `owner/name`, with all files in `needed`.

    An entry `this|that` needs one of the files. Raises CheckpointError if there is no such folder
    or model, or if a file is missing.
    """
    path = Path(name).expanduser()
    if not path.is_dir():
        path = _from_hub(name, patterns, needed, fetch)
    if missing := _missing(path, needed):
        names = ", no ".join(missing).replace("|", " or ")
        raise CheckpointError(f"{path} has no {names}")
    return path


def _from_hub(name: str, patterns: Sequence[str], needed: Sequence[str], fetch: Fetch) -> Path:
    try:
        path = Path(fetch(name, patterns, local_only=True))
        if not _missing(path, needed):
            return path
    except (OSError, ValueError):  # not in the cache
        pass
    try:
        return Path(fetch(name, patterns, local_only=False))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise CheckpointError(
            f"{name} is not a folder, and cannot be fetched from the hub: {reason}"
        ) from error


def _missing(folder: Path, needed: Sequence[str]) -> list[str]:
    """The entries of `needed` for which the folder has no file."""
    return [
        names for names in needed if not any((folder / name).is_file() for name in names.split("|"))
    ]


def published_sha256(path: Path) -> str:
    """The hash that the hub has of a large file in its cache; "" for small and for local files.

    The cache keeps large files under their SHA-256 and links to them (huggingface-hub's guide,
    "Understand caching").
    """
    name = path.resolve().name
    return name if re.fullmatch(r"[0-9a-f]{64}", name) else ""
