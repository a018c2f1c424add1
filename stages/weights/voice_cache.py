"""Caches the voices that a stage has loaded. A voice is loaded when a request first needs it.

The key is a file and its time of change (`VoiceFile`). A file that was replaced is loaded again;
requests that began with the old voice end with the old voice.
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


class WeakCache(Generic[T]):
    """Objects that workers in threads of this process share.

    An object is made for the first worker that asks, and freed when no worker holds it.
    """

    def __init__(self) -> None:
        self._objects: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object of `key`, made if there is none. Other threads wait while one is made."""
        with self._lock:
            found = self._objects.get(key)
            if found is None:
                found = self._objects[key] = make()
        return found


class VoiceCache(Generic[T]):
    """Voices by file, made by `load`. If there are more than `max_loaded`, idle ones are evicted.

    A voice is idle if no request uses it. The least recently used one goes first.
    """

    def __init__(self, load: Callable[[Path], T], max_loaded: int) -> None:
        self._load = load
        self._max_loaded = max_loaded
        self._voices: dict[VoiceFile, T] = {}  # the least recently used first
        self._num_users: dict[VoiceFile, int] = {}

    def __len__(self) -> int:
        return len(self._voices)

    def open(self, file: VoiceFile) -> T:
        """The voice, for one more request. Raises what `load` raises."""
        voice = self._voices.pop(file) if file in self._voices else self._load(Path(file.path))
        self._voices[file] = voice
        self._num_users[file] = self._num_users.get(file, 0) + 1
        self._evict()
        return voice

    def close(self, file: VoiceFile) -> None:
        """End the use by one request. Call it once for each `open` that returned."""
        self._num_users[file] -= 1
        if not self._num_users[file]:
            del self._num_users[file]
        self._evict()

    def _evict(self) -> None:
        idle = [file for file in self._voices if file not in self._num_users]
        for file in idle[: max(0, len(self._voices) - self._max_loaded)]:
            del self._voices[file]
