"""API keys: kept as their hashes only, compared in constant time.

A key has a short name, the beginning of its hash, by which its requests are counted and logged.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from server.config.settings import SettingsError
from server.errors import WrongKeyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from server.config.settings import Settings

NAME_CHARS = 12


class Keys:
    """The keys that the server knows, as SHA-256 digests. False where there are none."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        self._digests = tuple(digests)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def name_of(self, token: bytes) -> str:
        """The name of the key that was sent. Raises WrongKeyError. All keys are looked at."""
        sent, name = sha256(token).digest(), ""
        for digest in self._digests:
            if hmac.compare_digest(digest, sent):
                name = digest.hex()[:NAME_CHARS]
        if not name:
            raise WrongKeyError
        return name


def keys_of(settings: Settings) -> Keys:
    """The keys of the settings and those of the file. Raises SettingsError."""
    return Keys({*settings.api_keys, *_keys_in_file(settings)})


def _keys_in_file(settings: Settings) -> Iterable[bytes]:
    """One key a line; empty lines and lines that begin with # are none."""
    path = settings.api_keys_file
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"setting api_keys_file: {error}") from error
    keys = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
    if not keys:
        raise SettingsError(f"setting api_keys_file: there is no key in {path}")
    return [sha256(key.encode()).digest() for key in keys]
