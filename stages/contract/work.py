"""What a stage did for one request, and when. Its worker reports it; the record keeps it."""

from __future__ import annotations

from dataclasses import dataclass, field

SAME_STRETCH_S = 0.005
MAX_EMITS = 500  # of which the times are kept


@dataclass(slots=True)
class StageWork:
    """What a stage did for one request, as far as it has told: on our clock, in order.

    `busy` are the times in which it worked for it without much of a pause.
    """

    busy: list[tuple[float, float]] = field(default_factory=list)
    emitted_at: list[float] = field(default_factory=list)
    num_emitted: int = 0

    def add(self, began_at: float, ended_at: float, num_chunks: int) -> None:
        """Append a step that was told: when it was, and how many chunks it gave."""
        if self.busy:
            last_end = self.busy[-1][1]
            ended_at = max(ended_at, last_end)  # a quicker message maps to earlier times
            if began_at - last_end < SAME_STRETCH_S:
                began_at = self.busy.pop()[0]
        self.busy.append((began_at, ended_at))
        self.num_emitted += num_chunks
        room = MAX_EMITS - len(self.emitted_at)
        self.emitted_at += [ended_at] * min(num_chunks, room)
