"""`nano-omni selftest URL`: checks what a server sends, and prints a line for each check."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from server.cli.client.api import client_of
from server.cli.commands.target import add_target, target_of
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
    """Which server, and by which names."""
    add_target(parser)
    parser.add_argument("--speech-model", metavar="NAME", default="", help="the first that speaks")
    parser.add_argument("--chat-model", metavar="NAME", default="", help="the first that chats")
    parser.add_argument("--voice", metavar="NAME", default="alloy", help="a voice it has (alloy)")


def run(options: argparse.Namespace) -> int:
    """Check, a line for each check as it ends; 0 where nothing is wrong."""
    console = Console(highlight=False, soft_wrap=True)
    width = max(len(name_of(check)) for check in checks())
    outcomes: Counter[Outcome] = Counter()
    with client_of(target_of(options)) as client:
        subject = subject_of(client, options.speech_model, options.chat_model, options.voice)
        for check in checks():
            report = run_check(check, subject)
            outcomes[report.outcome] += 1
            outcome = Text(f"{report.outcome:11}", COLOURS[report.outcome])
            console.print(Text.assemble(f"{report.check:{width}}  ", outcome, f"  {report.why}"))
    console.print(", ".join(f"{outcomes[name]} {name}" for name in COLOURS))
    return 1 if outcomes["wrong"] else 0
