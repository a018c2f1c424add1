"""`POST /v1/completions`."""

from fastapi import APIRouter, Request, Response

from openapi.completions.request import CompletionRequest
from openapi.completions.response import Completion
from server.http.auth import key_of
from server.http.body import read_body
from server.http.route import RawRoute
from server.observe import note_body
from server.operations.completions.plan import plan_completion
from server.operations.completions.response import completion_response
from server.routes.description.errors import ERRORS, Answers
from server.routes.description.operations import COMPLETION_STREAM, body_of
from server.serving.service import Service

ANSWERS: Answers = {
    200: {"description": "The texts.", "model": Completion, "content": COMPLETION_STREAM},
    **ERRORS,
}


def completion_routes(service: Service) -> APIRouter:
    """The routes of `/v1/completions`."""
    router = APIRouter(tags=["completions"], route_class=RawRoute)
    settings = service.settings

    @router.post(
        "/v1/completions",
        response_class=Response,
        responses=ANSWERS,
        openapi_extra=body_of(CompletionRequest),
    )
    async def create_completion(request: Request) -> Response:
        """Continue a prompt, without a chat template. The reply can be streamed."""
        body = await read_body(request, CompletionRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = await plan_completion(service, body)
        return completion_response(plan, settings, key_of(request))

    return router
