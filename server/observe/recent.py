"""The trails of the last few hundred requests, by the id that their responses had."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.observe.trail import Trail

MAX_KEPT = 300


class Recent:
    """Keeps `MAX_KEPT`; of several with the same id the latest."""

    def __init__(self) -> None:
        self._trails: OrderedDict[str, Trail] = OrderedDict()

    def put(self, trail: Trail) -> None:
        """Keep one more; the oldest goes."""
        self._trails[trail.request_id] = trail
        self._trails.move_to_end(trail.request_id)
        if len(self._trails) > MAX_KEPT:
            self._trails.popitem(last=False)

    def get(self, request_id: str) -> Trail | None:
        """The trail of an id, also while the request runs."""
        return self._trails.get(request_id)
