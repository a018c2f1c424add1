"""The timelines of the last few hundred requests, by the id that their responses had."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.observe.timeline import Timeline

MAX_KEPT = 300


class Recent:
    """Keeps `MAX_KEPT`; of several with the same id the latest."""

    def __init__(self) -> None:
        self._timelines: OrderedDict[str, Timeline] = OrderedDict()

    def put(self, timeline: Timeline) -> None:
        """Keep one more; the oldest goes."""
        self._timelines[timeline.request_id] = timeline
        self._timelines.move_to_end(timeline.request_id)
        if len(self._timelines) > MAX_KEPT:
            self._timelines.popitem(last=False)

    def get(self, request_id: str) -> Timeline | None:
        """The timeline of an id, also while the request runs."""
        return self._timelines.get(request_id)
