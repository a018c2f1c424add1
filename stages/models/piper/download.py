"""Downloads a voice from the public Piper collection into the voices folder.

The collection's `voices.json` lists the files of each voice and their MD5 sums. The name is looked
up there, and no other input becomes part of a path. Each voice gets its own folder, with its model
card. The weights are written last, so nobody can find an incomplete voice meanwhile.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = "rhasspy/piper-voices"
LISTING = "voices.json"


def from_hub(file: str) -> Path:
    """A file of the collection, downloaded by huggingface-hub into its cache."""
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(REPOSITORY, file))


def add_voice(name: str, folder: Path, fetch: Callable[[str], Path] = from_hub) -> Path:
    """Download the voice `name` into `folder`. Returns the path of its weights.

    Raises ValueError if the collection does not have this voice or a file has a wrong checksum.
    Raises OSError if the hub cannot be reached.
    """
    listing: dict[str, Any] = json.loads(fetch(LISTING).read_text(encoding="utf-8"))
    key, entry = _entry(name, listing)
    target = folder / key
    target.mkdir(parents=True, exist_ok=True)
    weights: Path | None = None
    for file in sorted(entry["files"], key=lambda file: file.endswith(".onnx")):
        path = target / PurePosixPath(file).name
        _copy_checked(fetch(file), path, entry["files"][file].get("md5_digest"))
        if path.suffix == ".onnx":
            weights = path
    if weights is None:
        raise ValueError(f"the collection has no weights for {key!r}")
    return weights


def _entry(name: str, listing: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    for key, entry in listing.items():
        if name == key or name in entry.get("aliases", ()):
            return key, entry
    near = difflib.get_close_matches(name, listing, n=3) or sorted(listing)[:3]
    raise ValueError(f"no voice {name!r} in {REPOSITORY}; similar names: {', '.join(near)}")


def _copy_checked(source: Path, path: Path, md5: str | None) -> None:
    if md5 is not None:
        with source.open("rb") as file:
            if hashlib.file_digest(file, "md5").hexdigest() != md5:
                raise ValueError(
                    f"{path.name} is not the file that {LISTING} describes: its MD5 sum differs"
                )
    part = path.with_name(f"{path.name}.part")
    shutil.copyfile(source, part)
    part.replace(path)
