"""`GET /metrics`, for Prometheus."""

from fastapi import APIRouter, Request, Response

from server.observe import Observer


def metrics_routes(watch: Observer) -> APIRouter:
    """The route of the metrics."""
    router = APIRouter()

    @router.get("/metrics", include_in_schema=False)
    async def metrics(request: Request) -> Response:
        """All metrics, in the format that is asked for."""
        body, media_type = watch.metrics.exposed(request.headers.get("accept", ""))
        return Response(body, headers={"content-type": media_type})

    return router
