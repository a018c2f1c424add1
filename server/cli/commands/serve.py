"""`nano-omni serve`: runs the HTTP server until SIGINT or SIGTERM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from server.cli.commands.options import ALL_SETTINGS, add_settings, load_settings
from server.cli.commands.terminal import print_line
from server.config.files import check_files
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from server.serve import listen, log_who_may_connect, serve
from server.serving.deploy import build_service

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni serve --host 0.0.0.0 --port 9000 --api-keys-file keys.txt
  nano-omni serve --ssl-certfile cert.pem --ssl-keyfile key.pem
  nano-omni serve --model fake                 fake stages without weights, for testing clients
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every setting except the secret ones."""
    add_settings(parser, ALL_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit status."""
    settings = load_settings(options).settings
    configure_logs(settings)
    check_files(settings)
    log_who_may_connect(settings)
    try:
        listener = listen(settings)
    except OSError as error:
        address = f"{settings.host}:{settings.port}"
        raise SettingsError(
            f"cannot listen on {address}: {error.strerror}; choose another --host or --port"
        ) from error
    anyio.run(serve, build_service(settings), listener, print_line)
    return 0
