"""`nano-omni trace ID`: a request's timeline from a server that runs, for trace viewers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.commands.target import add_key, target_of
from server.cli.commands.terminal import tell
from server.cli.trace_file import write_trace

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni trace req_4b1f0c2d                 the x-request-id of a response
  nano-omni trace my-id --url http://127.0.0.1:9000 -o my.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which request, of which server."""
    parser.add_argument("id", help="the x-request-id of its response")
    parser.add_argument("-o", "--output", type=Path, default=Path("trace.json"))
    parser.add_argument(
        "--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)"
    )
    add_key(parser)


def run(options: argparse.Namespace) -> int:
    """Fetch it; the exit status."""
    target = target_of(options)
    write_trace(target.url, target.key, options.id, options.output)
    tell(f"{options.output}: open it in https://ui.perfetto.dev")
    return 0
