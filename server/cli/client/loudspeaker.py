"""Plays sound while it comes, through a program that the machine has, where it has one that can.

Programs are tried in turn: one that ends at once (no sound device) is not the last word.
"""

from __future__ import annotations

import queue
import shutil
import subprocess
import threading
from typing import TYPE_CHECKING

from stages.contract.messages import OUTPUT_RATE_HZ

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each reads 16-bit little-endian mono samples from standard input.
PLAYERS = (
    f"paplay --raw --rate={OUTPUT_RATE_HZ} --channels=1 --format=s16le --latency-msec=50",
    f"aplay -q -t raw -f S16_LE -r {OUTPUT_RATE_HZ} -c 1 -",
    f"ffplay -nodisp -autoexit -loglevel error -f s16le -ar {OUTPUT_RATE_HZ} -i -",
    f"play -q -t raw -b 16 -e signed -c 1 -r {OUTPUT_RATE_HZ} -",
)
PROGRAMS = tuple(player.split()[0] for player in PLAYERS)


class Loudspeaker:
    """A player for one sound. Never blocks whoever feeds it; `close` waits until all was heard.

    `heard`: whether a program took all of it; known after `close`.
    """

    def __init__(self) -> None:
        self.heard = False
        self._coming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._kept: list[bytes] = []
        self._ended = False
        self._stopped = False
        self._lock = threading.Lock()  # between starting a program and telling it to stop
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def feed(self, sound: bytes) -> None:
        """Samples that are to be heard next."""
        self._coming.put(sound)

    def close(self) -> None:
        """No more comes; wait for the last sample."""
        self._coming.put(None)
        self._thread.join()

    def stop(self) -> None:
        """Be silent now."""
        self._coming.put(None)
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.terminate()
        self._thread.join()

    def _play(self) -> None:
        for command in PLAYERS:
            program, *arguments = command.split()
            path = shutil.which(program)
            if path is not None and self._played_by((path, *arguments)):
                self.heard = True
                return

    def _played_by(self, command: tuple[str, ...]) -> bool:
        """Whether the program took all of it, also what one before it did not."""
        try:
            with self._lock:
                if self._stopped:
                    return False
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            with self._process as process:
                assert process.stdin is not None
                for sound in self._sounds():
                    process.stdin.write(sound)
                    process.stdin.flush()
        except BrokenPipeError:
            return False
        return process.returncode == 0

    def _sounds(self) -> Iterator[bytes]:
        yield from tuple(self._kept)
        while not self._ended and (sound := self._coming.get()) is not None:
            self._kept.append(sound)
            yield sound
        self._ended = True
