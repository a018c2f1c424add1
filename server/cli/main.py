"""The command line: which commands there are, and how each is run.

A command is a module of `server.cli.commands` with `EXAMPLES`, `add_arguments(parser)` and
`run(options)`, which gives the exit status. Only the one that is asked for is imported, so that
help and mistakes cost nothing. Errors are one line and a status that is not 0.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from server import VERSION

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

COMMANDS = {
    "serve": "answer on HTTP",
    "say": "speak a text, aloud or into a file",
    "chat": "talk with a model that answers in text and voice",
    "voices": "list the voices, or fetch another one",
    "models": "list the models and their voices",
    "bench": "put a short load on a server and say how soon and how smoothly it speaks",
    "selftest": "check what a server sends, ours or another",
    "trace": "fetch a request's timeline from a server, for Perfetto",
    "plan": "simulate a layout of workers under load",
    "config": "show the settings and where each comes from",
    "completion": "print what makes a shell complete commands and options",
}
EXAMPLES = """\
examples:
  nano-omni serve                              on http://127.0.0.1:8000/v1
  nano-omni say "Hello there."                 aloud, without a server
  nano-omni chat --url http://127.0.0.1:8000   with a server that runs
  nano-omni COMMAND --help                     the options of a command
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has enough
        sys.stderr.close()
        return 141
    except Exception as error:
        if not _is_expected(error):
            raise
        sys.stderr.write(f"nano-omni: {error}\n")
        return 1


def _run(words: Sequence[str]) -> int:
    parser = parser_of(words)  # it may import for a second
    options = parser.parse_args(words)
    if options.command is None:
        parser.print_help()
        return 0
    status: int = options.run(options)
    return status


def parser_of(words: Container[str]) -> argparse.ArgumentParser:
    """The parser, with the options of those commands that are among `words`."""
    parser = argparse.ArgumentParser(
        "nano-omni",
        description="Models that think, talk and sound.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nano-omni {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in words:
            module = import_module(f"server.cli.commands.{name}")
            command.epilog = f"examples:\n{module.EXAMPLES}"
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser


def _is_expected(error: Exception) -> bool:
    """Whether it is a person's mistake or bad luck, and not a defect of ours."""
    from server.config.settings import SettingsError
    from server.errors import ServerError
    from stages.contract.errors import OmniError

    return isinstance(error, SettingsError | ServerError | OmniError | OSError | ValueError)


if __name__ == "__main__":
    sys.exit(main())
