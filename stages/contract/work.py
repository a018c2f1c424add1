"""What a stage did for one request, and when. Workers report it; the request's record keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_GAP_S = 0.005  # busy intervals that are closer than this become one
MAX_EMITS = 500  # the number of chunks whose times are kept


@dataclass(slots=True)
class StageWork:
    """What a stage did for one request so far. Times are on the server's clock, in s, ascending.

    `busy` has the intervals in which the stage worked for the request. `emitted_at` has the times
    of the first `MAX_EMITS` of its `num_emitted` chunks.
    """

    busy: list[tuple[float, float]] = field(default_factory=list)
    emitted_at: list[float] = field(default_factory=list)
    num_emitted: int = 0

    def add(self, began_at: float, ended_at: float, num_chunks: int) -> None:
        """Add a step that emitted `num_chunks` chunks. Steps come in order."""
        if self.busy:
            last_end = self.busy[-1][1]
            ended_at = max(ended_at, last_end)  # clock mapping may move a later step back a little
            if began_at - last_end < MAX_GAP_S:
                began_at = self.busy.pop()[0]
        self.busy.append((began_at, ended_at))
        self.num_emitted += num_chunks
        num_free = MAX_EMITS - len(self.emitted_at)
        self.emitted_at += [ended_at] * min(num_chunks, num_free)
