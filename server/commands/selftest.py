"""`nano-omni selftest URL`: checks what a server sends, and prints a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from server.client.api import client_of
from server.commands.target import add_target, target_of
from server.commands.terminal import progress
from server.selftest.run import checks, subject_of
from server.selftest.run import run as run_check

if TYPE_CHECKING:
    import argparse

    from server.selftest.run import Report

EXAMPLES = """\
  nano-omni selftest http://127.0.0.1:8000
  nano-omni selftest https://example.org/v1 --speech-model kokoro --voice af_sky
"""
COLOURS = {"ok": "green", "wrong": "bold red", "not offered": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which server, and by which names."""
    add_target(parser)
    parser.add_argument("--speech-model", metavar="NAME", default="", help="the first that speaks")
    parser.add_argument("--chat-model", metavar="NAME", default="", help="the first that chats")
    parser.add_argument("--voice", metavar="NAME", default="alloy", help="a voice it has (alloy)")


def run(options: argparse.Namespace) -> int:
    """Check; 0 where nothing is wrong."""
    with client_of(target_of(options)) as client:
        subject = subject_of(client, options.speech_model, options.chat_model, options.voice)
        found = []
        with progress("checking", len(checks())) as step:
            for check in checks():
                found.append(run_check(check, subject))
                step()
    _print(found)
    return 1 if any(report.outcome == "wrong" for report in found) else 0


def _print(found: list[Report]) -> None:
    table = Table("check", "", "what is wrong")
    for report in found:
        colour = COLOURS[report.outcome]
        table.add_row(report.check, f"[{colour}]{report.outcome}[/]", Text(report.why))
    console = Console()
    console.print(table)
    counts = [(name, sum(r.outcome == name for r in found)) for name in COLOURS]
    console.print(", ".join(f"{count} {name}" for name, count in counts))
