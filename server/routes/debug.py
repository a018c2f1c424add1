"""`GET /debug/requests/{id}/timeline`, where a setting opens it. See docs/timeline.md."""

from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from server.errors import UnknownTimelineError
from server.observe import Observer
from server.observe.chrome import chrome_trace
from server.observe.timeline_json import timeline_json


def debug_routes(watch: Observer) -> APIRouter:
    """The routes for whoever wants to know why."""
    router = APIRouter(prefix="/debug", include_in_schema=False)

    @router.get("/requests/{request_id}/timeline")
    async def request_timeline(
        request_id: str, format: Literal["json", "chrome"] = "json"
    ) -> Response:
        """What happened when, of a request that runs or is over."""
        if (timeline := watch.recent.get(request_id)) is None:
            raise UnknownTimelineError(request_id)
        found = timeline_json(timeline)
        return JSONResponse(chrome_trace(found) if format == "chrome" else found)

    return router
