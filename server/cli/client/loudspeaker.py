"""Plays audio as it arrives, through one of several player programs, if one is installed.

The programs are tried in turn. If one fails (no sound device, for example), the next one starts and
gets all samples from the beginning.
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
CANNOT_PLAY = f"cannot play audio: no sound device, or none of {', '.join(PROGRAMS)} is installed"


class Loudspeaker:
    """Plays one stream of samples. `feed` never blocks; `close` waits until everything was played.

    After `close`, `played_all` says whether a program played all samples.
    """

    def __init__(self) -> None:
        self.played_all = False
        self._incoming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._history: list[bytes] = []  # everything so far, for the next program
        self._is_complete = False
        self._is_stopped = False
        self._lock = threading.Lock()  # so that `stop` never misses a program that is starting
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._play, daemon=True)
        self._thread.start()

    def feed(self, pcm: bytes) -> None:
        """Add samples to play next."""
        self._incoming.put(pcm)

    def close(self) -> None:
        """End the stream, and wait until the last sample was played."""
        self._incoming.put(None)
        self._thread.join()

    def stop(self) -> None:
        """Stop playing at once."""
        self._incoming.put(None)
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.terminate()
        self._thread.join()

    def _play(self) -> None:
        for command in PLAYERS:
            program, *arguments = command.split()
            path = shutil.which(program)
            if path is not None and self._play_with((path, *arguments)):
                self.played_all = True
                return

    def _play_with(self, command: tuple[str, ...]) -> bool:
        """Play the whole stream with one program. Return whether it succeeded."""
        try:
            with self._lock:
                if self._is_stopped:
                    return False
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            with self._process as process:
                assert process.stdin is not None
                for pcm in self._stream():
                    process.stdin.write(pcm)
                    process.stdin.flush()
        except BrokenPipeError:
            return False
        return process.returncode == 0

    def _stream(self) -> Iterator[bytes]:
        """All samples from the beginning: those of the history, then new ones as they arrive."""
        yield from tuple(self._history)
        while not self._is_complete and (pcm := self._incoming.get()) is not None:
            self._history.append(pcm)
            yield pcm
        self._is_complete = True
