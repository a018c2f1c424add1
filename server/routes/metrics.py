"""`GET /metrics`, for Prometheus."""

from fastapi import APIRouter, Request, Response

from server.observe import Observer


def metrics_routes(observer: Observer) -> APIRouter:
    """The route of `/metrics`."""
    router = APIRouter()

    @router.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """All metrics, in the format that the Accept header prefers."""
        body, media_type = observer.metrics.exposed(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": media_type})

    return router
