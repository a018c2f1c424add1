"""What modules do that make a stored file: write it to standard output, or check that it is so."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_check(text: str, stored: Path, module: str) -> int:
    """Write `text`, or with `--check` compare it with `stored`; the exit status of `module`."""
    if "--check" not in sys.argv[1:]:
        sys.stdout.write(text)
        return 0
    if stored.is_file() and stored.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{stored} is not what `python -m {module}` writes\n")
    return 1
