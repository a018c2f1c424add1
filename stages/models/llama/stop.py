"""Ends a text at the first stop string, without letting any of that string out.

Text that could be the beginning of a stop string is held back until it is certain. What comes out
does not depend on how the text was cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopFilter:
    """Of several stop strings the one that is complete first counts; if two are, the longer."""

    def __init__(self, stops: Sequence[str]) -> None:
        """ValueError for an empty stop string."""
        if not all(stops):
            raise ValueError("a stop string must not be empty")
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """The text that is now certain to come before any stop; not called once stopped."""
        text = self._held + text
        ends = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        self.stopped = bool(ends)
        size = min(ends)[1] if ends else len(text) - self._num_doubtful(text)
        self._held = "" if ends else text[size:]
        return text[:size]

    def flush(self) -> str:
        """The text held back, when no more will come."""
        text, self._held = self._held, ""
        return text

    def _num_doubtful(self, text: str) -> int:
        """How long the longest end of `text` is that begins a stop string."""
        longest = max(map(len, self._stops), default=1) - 1
        for size in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stops):
                return size
        return 0
