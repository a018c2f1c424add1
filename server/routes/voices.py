"""`POST /v1/audio/voices` and `DELETE /v1/audio/voices/{voice}`: voices that a model copies."""

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
    """The routes that put recordings into the server's folder, and take them out."""
    router = APIRouter(tags=["audio"], responses=ERRORS)
    settings = service.settings
    recordings = Recordings(service)

    @router.post(
        "/v1/audio/voices",
        response_model=CreatedVoice,
        openapi_extra=form_of(VoiceUpload, "audio_sample"),
    )
    async def create_voice(request: Request) -> Response:
        """Add a voice: a recording of it, and what is said in it. It is never fetched from a URL.

        A model that copies voices speaks with it at once, under its name.
        """
        body, sound = await read_form(
            request, VoiceUpload, "audio_sample", settings.max_recording_bytes
        )
        await recordings.add(body, sound)
        created = CreatedVoice(
            object="audio.voice", id=body.name, name=body.name, created_at=int(time.time())
        )
        return wire_response(created)

    @router.delete("/v1/audio/voices/{voice}", response_model=DeletedVoice)
    async def delete_voice(voice: str) -> Response:
        """Remove a voice that was added. Requests that speak with it go on."""
        await recordings.remove(voice)
        return wire_response(DeletedVoice(object="audio.voice.deleted", id=voice, deleted=True))

    return router
