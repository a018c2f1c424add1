"""Parses a recorded HTTP response into its status and the pieces of its body with their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.http_client import Trace


@dataclass(frozen=True, slots=True)
class Body:
    """A response body. `complete`: it ended as HTTP requires. `status` 0: there was no response."""

    status: int
    complete: bool
    pieces: list[tuple[float, bytes]]


def read_body(trace: Trace) -> Body:
    """Parse the response of a trace."""
    head, rest = _split_head(trace.received)
    if head is None:
        return Body(0, complete=False, pieces=[])
    lines = head.split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines[1:] if b": " in line)
    status = int(lines[0].split()[1])
    if headers.get(b"transfer-encoding") == b"chunked":
        unchunk = Unchunk()
        pieces = [(at_s, body) for at_s, raw in rest if (body := unchunk.feed(raw))]
        return Body(status, unchunk.ended, pieces)
    pieces = [(at_s, raw) for at_s, raw in rest if raw]
    length = headers.get(b"content-length")
    complete = length is None or sum(len(raw) for _, raw in pieces) == int(length)
    return Body(status, complete, pieces)


def _split_head(
    received: list[tuple[float, bytes]],
) -> tuple[bytes | None, list[tuple[float, bytes]]]:
    seen = b""
    for k, (at_s, raw) in enumerate(received):
        seen += raw
        head, found, rest = seen.partition(b"\r\n\r\n")
        if found:
            return head, [(at_s, rest), *received[k + 1 :]]
    return None, []


class Unchunk:
    """Removes the chunked transfer coding from bytes that may be split anywhere.

    `ended`: the last chunk was received.
    """

    def __init__(self) -> None:
        self._held = b""
        self._left = 0  # bytes left of the current chunk, with its line end
        self.ended = False

    def feed(self, raw: bytes) -> bytes:
        """Add received bytes. Returns the bytes of the body in them."""
        self._held += raw
        return b"".join(self._bodies())

    def _bodies(self) -> Iterator[bytes]:
        while not self.ended:
            if self._left == 0:
                line, found, rest = self._held.partition(b"\r\n")
                if not found:
                    return
                size = int(line.split(b";")[0], 16)
                self._held, self._left, self.ended = rest, size + 2, size == 0
                continue
            part = self._held[: self._left]
            if not part:
                return
            self._held = self._held[len(part) :]
            # The last two of the bytes that are left are the line end.
            yield part[: max(0, self._left - 2)]
            self._left -= len(part)
