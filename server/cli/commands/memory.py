"""`nano-omni memory`: how much memory the models will take, before they are loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.terminal import print_line, spinner
from server.config.logs import configure_logs
from server.serving.deploy import memory_bytes

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni memory
  nano-omni memory --model piper-joe
"""
PROCESS_BYTES = 350_000_000  # Python, torch and the server, measured on Linux with a CPU build


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings that choose the models."""
    add_settings(parser, MODEL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Print an estimate for each stage, the sum, and what the machine has; the exit status."""
    settings = load_settings(options).settings
    configure_logs(settings)
    with spinner("reading the models"):
        models = memory_bytes(settings)
    for model, stages in models.items():
        for role, num_bytes in stages.items():
            print_line(f"{_mb(num_bytes)}  {model}: {role}")
    total = PROCESS_BYTES + sum(sum(stages.values()) for stages in models.values())
    print_line(f"{_mb(PROCESS_BYTES)}  Python, torch and the server")
    print_line(f"{_mb(total)}  in all, of {_mb(_machine_bytes()).strip()} in this machine")
    return 0


def _mb(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:8,.0f} MB"


def _machine_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
