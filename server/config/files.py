"""Checks the files that settings name, before anything starts: API keys and TLS certificate."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from server.config.keys import keys_of
from server.config.settings import SettingsError

if TYPE_CHECKING:
    from server.config.settings import Settings


def check_files(settings: Settings) -> None:
    """Read all files as the server will. Raises SettingsError with the name of the bad setting."""
    keys_of(settings)
    _check_tls(settings)


def _check_tls(settings: Settings) -> None:
    certificate, key = settings.ssl_certfile, settings.ssl_keyfile
    if certificate is None:
        if key is not None:
            raise SettingsError("setting ssl_keyfile: it needs ssl_certfile, which is not set")
        return
    for name, path in (("ssl_certfile", certificate), ("ssl_keyfile", key)):
        if path is not None and not path.is_file():
            raise SettingsError(f"setting {name}: there is no file {path}")
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
    except OSError as error:
        raise SettingsError(f"setting ssl_certfile: {error}") from error
