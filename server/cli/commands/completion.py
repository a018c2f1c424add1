"""`nano-omni completion SHELL`: prints a completion script, generated from the parser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import shtab

from server.cli.commands.terminal import print_line
from server.cli.main import COMMANDS, build_parser
from server.config.settings import STAGE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = """\
  nano-omni completion bash > ~/.local/share/bash-completion/completions/nano-omni
  nano-omni completion zsh > ~/.zfunc/_nano-omni     if ~/.zfunc is in fpath
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the name of the shell."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS)


def run(options: argparse.Namespace) -> int:
    """Print the script and return the exit status."""
    parser = build_parser(COMMANDS)
    for action in _actions(parser):
        if action.dest in STAGE_FIELDS:  # hidden in `--help`, but scripts should complete them
            action.help = STAGE_FIELDS[action.dest].description
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print_line(shtab.complete(parser, shell=options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _actions(command)
