"""The timelines of the last 300 requests, by the id in their `x-request-id` header."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.observe.timeline import Timeline

MAX_KEPT = 300


class Recent:
    """Keeps the last `MAX_KEPT` timelines. A new one replaces an older one with the same id."""

    def __init__(self) -> None:
        self._timelines: OrderedDict[str, Timeline] = OrderedDict()

    def put(self, timeline: Timeline) -> None:
        """Keep a timeline; evict the oldest if there are too many."""
        self._timelines[timeline.request_id] = timeline
        self._timelines.move_to_end(timeline.request_id)
        if len(self._timelines) > MAX_KEPT:
            self._timelines.popitem(last=False)

    def get(self, request_id: str) -> Timeline | None:
        """The timeline with this id, or None. Requests that still run are found too."""
        return self._timelines.get(request_id)
