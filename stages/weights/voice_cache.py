"""The voices that a stage has loaded: each when it is first spoken; idle ones while there is room.

A voice that is loaded belongs to a file as it was when it was found (`VoiceFile`): a file that was
replaced is loaded anew, and requests that began with the old one end with it.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from stages.contract.messages import VoiceFile

T = TypeVar("T")


class Shared(Generic[T]):
    """What workers in threads of this process have in common: made for the first that asks, gone
    with the last that holds it."""

    def __init__(self) -> None:
        self._made: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._making = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The one of `key`. The others wait while one is made."""
        with self._making:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = make()
        return found


class VoiceCache(Generic[T]):
    """`load` makes a voice of a file. Beyond `max_loaded`, the voice idle for longest goes."""

    def __init__(self, load: Callable[[Path], T], max_loaded: int) -> None:
        self._load = load
        self._max_loaded = max_loaded
        self._voices: dict[VoiceFile, T] = {}  # the one used last is the last
        self._users: dict[VoiceFile, int] = {}

    def __len__(self) -> int:
        return len(self._voices)

    def open(self, file: VoiceFile) -> T:
        """The voice, for one request more. Raises what loading raises."""
        voice = self._voices.pop(file) if file in self._voices else self._load(Path(file.path))
        self._voices[file] = voice
        self._users[file] = self._users.get(file, 0) + 1
        self._unload()
        return voice

    def close(self, file: VoiceFile) -> None:
        """A request less. Called once for each `open` that returned."""
        self._users[file] -= 1
        if not self._users[file]:
            del self._users[file]
        self._unload()

    def _unload(self) -> None:
        idle = [file for file in self._voices if file not in self._users]
        for file in idle[: max(0, len(self._voices) - self._max_loaded)]:
            del self._voices[file]
