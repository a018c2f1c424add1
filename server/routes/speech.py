"""`POST /v1/audio/speech`."""

from fastapi import APIRouter, Request, Response

from openapi.speech import SpeechRequest
from server.auth import key_of
from server.body import read_body
from server.described import SPEECH_ANSWERS, body_of
from server.plain import PlainRoute
from server.service import Service
from server.speech import plan_speech
from server.speech_reply import speech_response
from server.watch import note_body


def speech_routes(service: Service) -> APIRouter:
    """The routes of speech."""
    router = APIRouter(tags=["audio"], route_class=PlainRoute)
    settings = service.settings

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=SPEECH_ANSWERS,
        openapi_extra=body_of(SpeechRequest),
    )
    async def create_speech(request: Request) -> Response:
        """Speak a text. The sound is sent while it is made."""
        body = await read_body(request, SpeechRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = plan_speech(service, body)
        return speech_response(plan, body, settings, key_of(request))

    return router
