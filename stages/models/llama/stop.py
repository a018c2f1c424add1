"""Ends a text at the first stop string, and lets no part of that string out.

Text that may be the beginning of a stop string is held back until that is certain. The output does
not depend on how the text was cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class StopFilter:
    """Filters a text. The stop string that is complete first counts; of two, the longer one."""

    def __init__(self, stops: Sequence[str]) -> None:
        """Raises ValueError for an empty stop string."""
        if not all(stops):
            raise ValueError("a stop string must not be empty")
        self._stops = tuple(stops)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """Add text. Returns the text that is certainly before any stop string.

        Do not call it when `stopped` is True.
        """
        text = self._held + text
        ends = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        self.stopped = bool(ends)
        size = min(ends)[1] if ends else len(text) - self._num_uncertain(text)
        self._held = "" if ends else text[size:]
        return text[:size]

    def flush(self) -> str:
        """The text held back; call it when no more text will come."""
        text, self._held = self._held, ""
        return text

    def _num_uncertain(self, text: str) -> int:
        """The length of the longest suffix of `text` that begins a stop string."""
        longest = max(map(len, self._stops), default=1) - 1
        for size in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-size:]) for stop in self._stops):
                return size
        return 0
