"""The command line: lists the commands and runs one of them.

A command is a module of `server.cli.commands`. It defines `EXAMPLES`, `add_arguments(parser)` and
`run(options)`, which returns the exit status. Only the requested command is imported, so `--help`
and typing errors are fast. An error is printed as one line, and the exit status is not 0.
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
    "serve": "start the HTTP server",
    "say": "speak a text, aloud or into a file",
    "chat": "chat with a model that answers in text and voice",
    "voices": "list the voices, or download another one",
    "models": "list the models and their voices",
    "weights": "fetch and check the files that the models need",
    "memory": "show how much memory the models will take, before loading them",
    "bench": "send a short load to a server and measure latency, gaps and throughput",
    "selftest": "check the responses of any server with an OpenAI-compatible API",
    "trace": "download a request's timeline from a server, for Perfetto",
    "plan": "simulate stage workers under load, to size a deployment",
    "config": "show all settings and where each value comes from",
    "completion": "print a script for shell completion",
}
EXAMPLES = """\
examples:
  nano-omni serve                              serve on http://127.0.0.1:8000/v1
  nano-omni say "Hello there."                 speak aloud, without a server
  nano-omni chat --url http://127.0.0.1:8000   chat with a running server
  nano-omni COMMAND --help                     show the options of a command
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: `sys.argv`) and return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output closed it, as `head` does
        sys.stderr.close()
        return 141
    except Exception as error:
        if not _is_expected(error):
            raise
        sys.stderr.write(f"nano-omni: {error}\n")
        return 1


def _run(arguments: Sequence[str]) -> int:
    parser = build_parser(arguments)  # importing the command may take a second
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    status: int = options.run(options)
    return status


def build_parser(commands: Container[str]) -> argparse.ArgumentParser:
    """Build the parser. Only the commands whose names are in `commands` get their options."""
    parser = argparse.ArgumentParser(
        "nano-omni",
        description="An OpenAI-compatible server for models that write and speak.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"nano-omni {VERSION}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        command = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in commands:
            module = import_module(f"server.cli.commands.{name}")
            command.epilog = f"examples:\n{module.EXAMPLES}"
            command.set_defaults(run=module.run)
            module.add_arguments(command)
    return parser


def _is_expected(error: Exception) -> bool:
    """Whether bad input or the environment caused the error, and not a bug in this program."""
    from server.config.settings import SettingsError
    from server.errors import ServerError
    from stages.contract.errors import OmniError

    return isinstance(error, SettingsError | ServerError | OmniError | OSError | ValueError)


if __name__ == "__main__":
    sys.exit(main())
