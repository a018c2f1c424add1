"""The types of settings that are more than a number, and how each is read from a string.

The environment and the command line give strings; a settings file and Python code may give lists
and tables. Both forms are accepted for every list and table.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

Seconds = Annotated[float, Field(gt=0.0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0)]
Device = Annotated[str, Field(pattern=r"^(auto|cpu|cuda:\d+)$")]
Dtype = Literal["auto", "float32", "bfloat16"]
Executor = Literal["thread", "process", "ray"]

ORIGIN_PATTERN = r"^(\*|[a-z][a-z0-9+.-]*://[^/\s]+)$"


def _split(value: object) -> object:
    """Split a string at commas and spaces; leave other values as they are."""
    return (
        [part for part in re.split(r"[,\s]+", value) if part] if isinstance(value, str) else value
    )


def _split_at_commas(value: object) -> object:
    """Split a string at commas only, because the path of a checkpoint may contain spaces."""
    if not isinstance(value, str):
        return value
    return [part for part in map(str.strip, value.split(",")) if part]


def _hashed(value: object) -> object:
    """Keys as their SHA-256 digests, so that the settings do not contain the keys themselves."""
    keys = _split(value)
    if not isinstance(keys, list | tuple):
        return keys
    return [sha256(str(key).encode()).digest() for key in keys]


def _aliases(value: object) -> object:
    """Turn `ALIAS=MODEL,ALIAS=MODEL` into a mapping; leave other values as they are."""
    parts = _split_at_commas(value)
    if not isinstance(value, str) or not isinstance(parts, list):
        return value
    aliases: dict[str, str] = {}
    for part in parts:
        alias, equals, model = (piece.strip() for piece in part.partition("="))
        if not (alias and equals and model):
            raise ValueError(f"{part!r} is not of the form ALIAS=MODEL")
        if alias in aliases:
            raise ValueError(f"the alias {alias!r} is given twice")
        aliases[alias] = model
    return aliases


Name = Annotated[str, Field(min_length=1)]
Origins = Annotated[
    tuple[Annotated[str, Field(pattern=ORIGIN_PATTERN)], ...], BeforeValidator(_split)
]
KeyDigests = Annotated[tuple[bytes, ...], BeforeValidator(_hashed)]
HomePath = Annotated[Path, BeforeValidator(lambda value: Path(value).expanduser())]
ModelNames = Annotated[tuple[Name, ...], Field(min_length=1), BeforeValidator(_split_at_commas)]
Aliases = Annotated[Mapping[Name, Name], BeforeValidator(_aliases)]
