"""`GET /health/live`, `/health/ready` and `/health`. A live process may not be ready yet."""

from fastapi import APIRouter, Response

from openapi.health import Health, StageHealth
from server.http.json_response import error_response, wire_response
from server.routes.description.errors import ERRORS
from server.serving.service import Service
from stages.contract.errors import UnavailableError


def health_routes(service: Service) -> APIRouter:
    """The routes for health checks."""
    router = APIRouter(tags=["health"])

    async def live() -> Response:
        """The process responds."""
        return wire_response(Health(status="live"))

    async def ready() -> Response:
        """Every stage has a worker that is running. 503 until then."""
        if not service.ready:  # not raised, as every probe would then be logged
            return error_response(UnavailableError("Not every stage of the models is up."))
        stages = {
            stage.name: StageHealth(workers=len(stage.workers), up=stage.num_up)
            for stage in service.stages
        }
        return wire_response(Health(status="ready", stages=stages))

    for path, endpoint in (("/health", ready), ("/health/live", live), ("/health/ready", ready)):
        router.add_api_route(path, endpoint, response_model=Health, responses=ERRORS)
    return router
