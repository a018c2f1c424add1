"""`POST /v1/chat/completions`."""

from fastapi import APIRouter, Request, Response

from openapi.chat.request import ChatRequest
from openapi.chat.response import ChatCompletion
from server.http.auth import key_of
from server.http.body import read_body
from server.http.route import RawRoute
from server.observe import note_body
from server.operations.chat.plan import plan_chat
from server.operations.chat.response import chat_response
from server.operations.shared.expiring_store import ExpiringStore
from server.routes.description.errors import ERRORS, Answers
from server.routes.description.operations import CHAT_PARAMETERS_EXTENSION, CHAT_STREAM, body_of
from server.serving.service import Service

ANSWERS: Answers = {
    200: {"description": "The reply.", "model": ChatCompletion, "content": CHAT_STREAM},
    **ERRORS,
}


def chat_routes(service: Service) -> APIRouter:
    """The routes of `/v1/chat/completions`."""
    router = APIRouter(tags=["chat"], route_class=RawRoute)
    settings = service.settings
    transcripts = ExpiringStore[str]()

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses=ANSWERS,
        openapi_extra={**body_of(ChatRequest), **CHAT_PARAMETERS_EXTENSION},
    )
    async def create_chat_completion(request: Request) -> Response:
        """Reply to a chat in text, in speech, or in both. The reply can be streamed."""
        body = await read_body(request, ChatRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = await plan_chat(service, body, transcripts)
        return chat_response(plan, settings, transcripts, key_of(request))

    return router
