"""`nano-omni config`: prints every setting and where its value comes from, but no API keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.commands.options import ALL_SETTINGS, add_settings, format_value, load_settings
from server.cli.commands.terminal import print_line
from server.config.files import check_files
from server.config.settings import values_of

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni config
  NANO_OMNI_PORT=9000 nano-omni config --host ::1
  nano-omni config --config other.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the same options as `serve`, so that their effect can be seen before it starts."""
    add_settings(parser, ALL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Print the settings and return the exit status. Fails wherever `serve` would refuse them."""
    loaded = load_settings(options)
    check_files(loaded.settings)
    rows = [
        (name, format_value(value), loaded.origins.get(name, "default"))
        for name, value in values_of(loaded.settings).items()
    ]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for name, value, origin in rows:
        print_line(f"{name:{widths[0]}}  {value:{widths[1]}}  {origin}")
    return 0
