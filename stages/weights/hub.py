"""Where a model's files are: a folder as it is, or a model of the hub, fetched into its cache once.

Torch-free. A model that is whole in the cache starts without a network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stages.contract.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence


class Fetch(Protocol):
    """How a model of the hub becomes a folder; OSError or ValueError where it does not."""

    def __call__(self, name: str, patterns: Sequence[str], *, local_only: bool) -> str:
        """The folder with the files that match; with `local_only` what the cache has of them."""


def snapshot(name: str, patterns: Sequence[str], *, local_only: bool) -> str:
    """See Fetch; by huggingface-hub, with its cache and its settings."""
    from huggingface_hub import snapshot_download

    return snapshot_download(name, allow_patterns=list(patterns), local_files_only=local_only)


def model_folder(
    name: str, patterns: Sequence[str], needed: Sequence[str], fetch: Fetch = snapshot
) -> Path:
    """The folder `name`, or that of the hub's model `owner/name`, with the files `needed`.

    One of several files that will do is written `this|that`. Raises CheckpointError where there is
    no folder, and where a file is missing.
    """
    path = Path(name).expanduser()
    if not path.is_dir():
        path = _from_hub(name, patterns, needed, fetch)
    if missing := _missing(path, needed):
        lacks = ", no ".join(missing).replace("|", " or ")
        raise CheckpointError(f"{path} has no {lacks}")
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
        raise CheckpointError(f"{name} is no folder, and the hub has it not: {reason}") from error


def _missing(folder: Path, needed: Sequence[str]) -> list[str]:
    return [
        names for names in needed if not any((folder / name).is_file() for name in names.split("|"))
    ]
