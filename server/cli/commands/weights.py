"""`nano-omni weights`: fetches every file that the models need, and checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import MODEL_SETTINGS, add_settings, load_settings
from server.cli.commands.terminal import print_line, spinner
from server.config.logs import configure_logs
from server.serving.deploy import weight_files

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni weights
  nano-omni weights --model OWNER/NAME         fetch a model of the hub before the first start
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the settings that choose the models."""
    add_settings(parser, MODEL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Print a line for each file; the exit status is 1 if one is missing or not as published."""
    settings = load_settings(options).settings
    configure_logs(settings)
    with spinner("fetching and checking"):
        rows = [(file, file.state()) for file in weight_files(settings)]
    for file, state in rows:
        size = f"{file.path.stat().st_size / 1e6:.1f} MB" if file.path.exists() else "-"
        print_line(f"{state:8}  {size:>10}  {file.path}")
    if not rows:
        print_line("no files are needed")
    return int(any(state in ("missing", "wrong") for _, state in rows))
