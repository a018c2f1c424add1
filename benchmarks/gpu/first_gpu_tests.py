"""Runs the tests that need a GPU, and keeps what they print in tests.txt.

The project's pytest settings name plugins that a bare GPU machine lacks, and `tests/conftest.py`
imports one. Neither is used by `tests/gpu`, so the warning is ignored and the file is left out.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.gpu.first_run import Run

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 200
COMMAND = (
    *(sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestConfigWarning", "--confcutdir", "tests/gpu", "tests/gpu"),
)


def measure(run: Run) -> None:
    """Record the last line of the tests. Raises RuntimeError if they failed."""
    if not run.on_gpu:
        run.record("tests", "left out: the device is not a GPU")
        return
    ended = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    (run.out / "tests.txt").write_text(ended.stdout + ended.stderr)
    print(ended.stdout[-3500:])
    run.record("tests", ended.stdout.strip().splitlines()[-1:])
    if ended.returncode:
        raise RuntimeError(f"pytest ended with code {ended.returncode}, see tests.txt")
