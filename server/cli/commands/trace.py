"""`nano-omni trace ID`: downloads a request's timeline from a server, for trace viewers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.commands.server_options import add_api_key, server_address
from server.cli.commands.terminal import print_line
from server.cli.trace_file import write_trace

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni trace req_4b1f0c2d                 the ID is the x-request-id of a response
  nano-omni trace my-id --url http://127.0.0.1:9000 -o my.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the request, the output file and the server."""
    parser.add_argument("id", help="the x-request-id header of the response")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("trace.json"),
        help="the file to write (default: %(default)s)",
    )
    parser.add_argument(
        "--url", default="http://127.0.0.1:8000", help="the server (default: %(default)s)"
    )
    add_api_key(parser)


def run(options: argparse.Namespace) -> int:
    """Download the timeline and return the exit status."""
    write_trace(server_address(options), options.id, options.output)
    print_line(f"{options.output}: open this file in https://ui.perfetto.dev")
    return 0
