"""API keys: only their hashes are kept, and they are compared in constant time.

The name of a key is the first 12 hex digits of its hash. Admission and the log use this name.
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
    """The server's keys as SHA-256 digests. It is false if there are none."""

    def __init__(self, digests: Iterable[bytes]) -> None:
        self._digests = tuple(digests)

    def __bool__(self) -> bool:
        return bool(self._digests)

    def name_of(self, token: bytes) -> str:
        """The name of the key `token`. Raises WrongKeyError. Always compares with every key."""
        sent, name = sha256(token).digest(), ""
        for digest in self._digests:
            if hmac.compare_digest(digest, sent):
                name = digest.hex()[:NAME_CHARS]
        if not name:
            raise WrongKeyError
        return name


def keys_of(settings: Settings) -> Keys:
    """The keys of `api_keys` and of `api_keys_file`. Raises SettingsError for a bad file."""
    return Keys({*settings.api_keys, *_keys_in_file(settings)})


def _keys_in_file(settings: Settings) -> Iterable[bytes]:
    """Read one key per line. Empty lines and lines that start with `#` are ignored."""
    path = settings.api_keys_file
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"setting api_keys_file: {error}") from error
    keys = [line for line in map(str.strip, lines) if line and not line.startswith("#")]
    if not keys:
        raise SettingsError(f"setting api_keys_file: {path} contains no key; write one per line")
    return [sha256(key.encode()).digest() for key in keys]
