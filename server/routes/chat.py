"""`POST /v1/chat/completions`."""

from fastapi import APIRouter, Request, Response

from openapi.chat_request import ChatRequest
from openapi.chat_response import ChatCompletion
from server.auth import key_of
from server.body import read_body
from server.chat.plan import plan_chat
from server.chat.response import chat_response
from server.described import CHAT_PARAMETERS_SHOWN, CHAT_STREAM, body_of
from server.described_errors import ERRORS, Answers
from server.kept import Kept
from server.plain import PlainRoute
from server.service import Service
from server.watch import note_body

ANSWERS: Answers = {
    200: {"description": "The reply.", "model": ChatCompletion, "content": CHAT_STREAM},
    **ERRORS,
}


def chat_routes(service: Service) -> APIRouter:
    """The routes of chats."""
    router = APIRouter(tags=["chat"], route_class=PlainRoute)
    settings = service.settings
    transcripts: Kept[str] = Kept()

    @router.post(
        "/v1/chat/completions",
        response_class=Response,
        responses=ANSWERS,
        openapi_extra={**body_of(ChatRequest), **CHAT_PARAMETERS_SHOWN},
    )
    async def create_chat_completion(request: Request) -> Response:
        """Answer a chat in text, in speech, or in both; whole, or as it is made."""
        body = await read_body(request, ChatRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = await plan_chat(service, body, transcripts)
        return chat_response(plan, settings, transcripts, key_of(request))

    return router
