"""`GET /debug/requests/{id}/timeline`, if the settings allow it (docs/timeline.md)."""

from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from server.errors import UnknownTimelineError
from server.observe import Observer
from server.observe.chrome import chrome_trace
from server.observe.timeline_json import timeline_json


def debug_routes(observer: Observer) -> APIRouter:
    """The routes for debugging."""
    router = APIRouter(prefix="/debug", include_in_schema=False)

    @router.get("/requests/{request_id}/timeline")
    async def request_timeline(
        request_id: str, format: Literal["json", "chrome"] = "json"
    ) -> Response:
        """What happened when in a request that is running or has ended."""
        if (timeline := observer.recent.get(request_id)) is None:
            raise UnknownTimelineError(request_id)
        events = timeline_json(timeline)
        return JSONResponse(chrome_trace(events) if format == "chrome" else events)

    return router
