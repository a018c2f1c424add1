"""Shared by the generators: writes a file to standard output, or checks the stored one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_or_check(text: str, stored: Path, module: str) -> int:
    """Write `text`; with `--check`, compare it with `stored` instead. Return the exit status.

    `module` is the name of the generator, for the error message.
    """
    if "--check" not in sys.argv[1:]:
        sys.stdout.write(text)
        return 0
    if stored.is_file() and stored.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{stored} is out of date; write it again with `python -m {module}`\n")
    return 1
