"""Command line options of the commands that talk to a server: its URL, API key and models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from server.cli.client.api import ServerAddress
from server.config.sources import CLIENT_KEY_VARIABLE, client_key

if TYPE_CHECKING:
    import argparse


def add_server_url(parser: argparse.ArgumentParser) -> None:
    """Add `URL` and `--api-key`."""
    parser.add_argument("url", metavar="URL", help="the server, for example http://127.0.0.1:8000")
    add_api_key(parser)


def add_api_key(parser: argparse.ArgumentParser) -> None:
    """Add `--api-key`. Its help names the environment variable, which other users cannot see."""
    parser.add_argument(
        "--api-key", metavar="KEY", help=f"the server's API key (default: {CLIENT_KEY_VARIABLE})"
    )


def add_speech_model(parser: argparse.ArgumentParser) -> None:
    """Add `--speech-model` and `--voice`."""
    parser.add_argument(
        "--speech-model",
        metavar="NAME",
        default="",
        help="the speech model (the first speech model of the server)",
    )
    parser.add_argument(
        "--voice", metavar="NAME", default="alloy", help="a voice of the speech model (alloy)"
    )


def server_address(options: argparse.Namespace) -> ServerAddress:
    """The address and API key that the options name."""
    return ServerAddress(options.url, options.api_key or client_key())
