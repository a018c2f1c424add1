"""`POST /v1/completions`."""

from fastapi import APIRouter, Request, Response

from openapi.completion import Completion
from openapi.completion_request import CompletionRequest
from server.auth import key_of
from server.body import read_body
from server.completions.plan import plan_completion
from server.completions.response import completion_response
from server.described import COMPLETION_STREAM, body_of
from server.described_errors import ERRORS, Answers
from server.plain import PlainRoute
from server.service import Service
from server.watch import note_body

ANSWERS: Answers = {
    200: {"description": "The texts.", "model": Completion, "content": COMPLETION_STREAM},
    **ERRORS,
}


def completion_routes(service: Service) -> APIRouter:
    """The routes of bare prompts."""
    router = APIRouter(tags=["completions"], route_class=PlainRoute)
    settings = service.settings

    @router.post(
        "/v1/completions",
        response_class=Response,
        responses=ANSWERS,
        openapi_extra=body_of(CompletionRequest),
    )
    async def create_completion(request: Request) -> Response:
        """Go on where a prompt ends, without a chat around it; whole, or as it is made."""
        body = await read_body(request, CompletionRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = await plan_completion(service, body)
        return completion_response(plan, settings, key_of(request))

    return router
