"""The options that say which server is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.client.api import Target
from server.config.settings import CLIENT_KEY_VARIABLE, client_key

if TYPE_CHECKING:
    import argparse


def add_target(parser: argparse.ArgumentParser) -> None:
    """`URL` and its key."""
    parser.add_argument("url", metavar="URL", help="as in http://127.0.0.1:8000")
    add_key(parser)


def add_key(parser: argparse.ArgumentParser) -> None:
    """The key alone. Other users of the machine see command lines, so there is a variable too."""
    parser.add_argument("--api-key", metavar="KEY", help=f"the key to it ({CLIENT_KEY_VARIABLE})")


def target_of(options: argparse.Namespace) -> Target:
    """The server that is meant."""
    return Target(options.url, options.api_key or client_key())
