"""`POST /v1/audio/speech`."""

from fastapi import APIRouter, Request, Response

from openapi.speech import SpeechRequest
from server.http.auth import key_of
from server.http.body import read_body
from server.http.route import RawRoute
from server.observe import note_body
from server.operations.speech.plan import plan_speech
from server.operations.speech.response import speech_response
from server.routes.description.operations import SPEECH_ANSWERS, body_of
from server.serving.service import Service


def speech_routes(service: Service) -> APIRouter:
    """The routes of `/v1/audio/speech`."""
    router = APIRouter(tags=["audio"], route_class=RawRoute)
    settings = service.settings

    @router.post(
        "/v1/audio/speech",
        response_class=Response,
        responses=SPEECH_ANSWERS,
        openapi_extra=body_of(SpeechRequest),
    )
    async def create_speech(request: Request) -> Response:
        """Speak a text. The audio is sent while it is made."""
        body = await read_body(request, SpeechRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = plan_speech(service, body)
        return speech_response(plan, settings, key_of(request))

    return router
