"""`nano-omni config`: every setting that is in force, and where it comes from. Never the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import ALL, add_settings, load_given, shown
from server.cli.commands.terminal import tell
from server.config.files import check_files
from server.config.settings import Settings

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni config
  NANO_OMNI_PORT=9000 nano-omni config --host ::1
  nano-omni config --config other.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """As `serve` takes them, to see what would come of them."""
    add_settings(parser, ALL)


def run(options: argparse.Namespace) -> int:
    """Show them, if `serve` would take them; the exit status."""
    loaded = load_given(options)
    check_files(loaded.settings)
    rows = [
        (name, shown(getattr(loaded.settings, name)), loaded.origins.get(name, "default"))
        for name in Settings.model_fields
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        tell(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}")
    return 0
