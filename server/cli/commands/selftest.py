"""`nano-omni selftest URL`: checks a server's responses, and prints one line for each check."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from server.cli.client.api import open_client
from server.cli.commands.server_options import add_server_url, add_speech_model, server_address
from server.cli.selftest.run import checks, name_of, subject_of
from server.cli.selftest.run import run as run_check

if TYPE_CHECKING:
    import argparse

    from server.cli.selftest.run import Outcome

EXAMPLES = """\
  nano-omni selftest http://127.0.0.1:8000
  nano-omni selftest https://example.org/v1 --speech-model kokoro --voice af_sky
"""
COLOURS: dict[Outcome, str] = {"ok": "green", "wrong": "bold red", "not offered": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the server, the models and the voice to check with."""
    add_server_url(parser)
    add_speech_model(parser)
    parser.add_argument(
        "--chat-model",
        metavar="NAME",
        default="",
        help="the chat model (the first chat model of the server)",
    )


def run(options: argparse.Namespace) -> int:
    """Run all checks and print each result as soon as it is known. Return 0 if none is wrong."""
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(name_of(check)) for check in checks())
    outcomes: Counter[Outcome] = Counter()
    with open_client(server_address(options)) as client:
        subject = subject_of(client, options.speech_model, options.chat_model, options.voice)
        for check in checks():
            report = run_check(check, subject)
            outcomes[report.outcome] += 1
            outcome = Text(f"{report.outcome:11}", COLOURS[report.outcome])
            line = Text.assemble(f"{report.check:{width}}  ", outcome, f"  {report.reason}")
            console.print(line)
    console.print(", ".join(f"{outcomes[name]} {name}" for name in COLOURS))
    return 1 if outcomes["wrong"] else 0
