"""Fetches a voice from the public Piper collection into the voices folder.

The collection's `voices.json` says which files a voice has and their MD5 sums. A name is looked up
there, and nothing else becomes part of a path. Each voice gets a folder of its own, with its model
card; the weights come last, so that whoever looks meanwhile sees no half voice.
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
    """A file of the collection, downloaded by huggingface-hub and kept in its cache."""
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(REPOSITORY, file))


def add_voice(name: str, folder: Path, fetch: Callable[[str], Path] = from_hub) -> Path:
    """Put the voice `name` into `folder`; the path of its weights.

    Raises ValueError for a name that the collection does not have, or a file that is not what it
    should be; OSError where the hub cannot be reached.
    """
    listing: dict[str, Any] = json.loads(fetch(LISTING).read_text(encoding="utf-8"))
    key, entry = _entry(name, listing)
    target = folder / key
    target.mkdir(parents=True, exist_ok=True)
    weights: Path | None = None
    for file in sorted(entry["files"], key=lambda file: file.endswith(".onnx")):
        path = target / PurePosixPath(file).name
        _put(fetch(file), path, entry["files"][file].get("md5_digest"))
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
    raise ValueError(f"no voice {name!r} in {REPOSITORY}; there are {', '.join(near)}, ...")


def _put(source: Path, path: Path, md5: str | None) -> None:
    if md5 is not None:
        with source.open("rb") as file:
            if hashlib.file_digest(file, "md5").hexdigest() != md5:
                raise ValueError(f"{path.name} is not the file that {LISTING} describes")
    part = path.with_name(f"{path.name}.part")
    shutil.copyfile(source, part)
    part.replace(path)
