"""`nano-omni serve`: answers on HTTP until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from server.cli.commands.options import ALL, add_settings, load_given
from server.cli.commands.starting import service_of
from server.cli.commands.terminal import tell
from server.config.files import check_files
from server.config.logs import configure_logs
from server.config.settings import SettingsError
from server.serve import listen, log_who_may_connect, serve

if TYPE_CHECKING:
    import argparse

EXAMPLES = """\
  nano-omni serve --host 0.0.0.0 --port 9000 --api-keys-file keys.txt
  nano-omni serve --ssl-certfile cert.pem --ssl-keyfile key.pem
  nano-omni serve --model fake                 without weights, for testing clients
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Every setting."""
    add_settings(parser, ALL)


def run(options: argparse.Namespace) -> int:
    """Serve; the exit status."""
    settings = load_given(options).settings
    configure_logs(settings)
    check_files(settings)
    log_who_may_connect(settings)
    try:
        listener = listen(settings)
    except OSError as error:
        place = f"{settings.host}:{settings.port}"
        raise SettingsError(f"cannot listen on {place}: {error.strerror}; try --port") from error
    anyio.run(serve, service_of(settings), listener, tell)
    return 0
