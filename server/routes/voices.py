"""`POST /v1/audio/voices` and `DELETE /v1/audio/voices/{voice}`: voices to clone."""

import time

from fastapi import APIRouter, Request, Response

from openapi.voice import CreatedVoice, DeletedVoice, VoiceUpload
from server.http.json_response import wire_response
from server.http.multipart import read_form
from server.operations.voices.recordings import Recordings
from server.routes.description.errors import ERRORS
from server.routes.description.operations import form_of
from server.serving.service import Service


def voice_routes(service: Service) -> APIRouter:
    """The routes that add and remove uploaded voices."""
    router = APIRouter(tags=["audio"], responses=ERRORS)
    settings = service.settings
    recordings = Recordings(service)

    @router.post(
        "/v1/audio/voices",
        response_model=CreatedVoice,
        openapi_extra=form_of(VoiceUpload, "audio_sample"),
    )
    async def create_voice(request: Request) -> Response:
        """Add a voice: a recording of it, and its transcript. URLs are not accepted.

        Models that clone voices can use the new voice at once, by its name.
        """
        body, file = await read_form(
            request, VoiceUpload, "audio_sample", settings.max_recording_bytes
        )
        await recordings.add(body, file)
        created = CreatedVoice(
            object="audio.voice", id=body.name, name=body.name, created_at=int(time.time())
        )
        return wire_response(created)

    @router.delete("/v1/audio/voices/{voice}", response_model=DeletedVoice)
    async def delete_voice(voice: str) -> Response:
        """Remove an uploaded voice. Running requests that use it are not affected."""
        await recordings.remove(voice)
        return wire_response(DeletedVoice(object="audio.voice.deleted", id=voice, deleted=True))

    return router
