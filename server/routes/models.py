"""`GET /v1/models`, `/v1/models/{id}`, `/v1/audio/models` and `/v1/audio/voices`."""

from collections.abc import Iterable

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from openapi.models import Model, ModelList, SpeechModelList
from openapi.voice import Voice, VoiceList
from server.http.json_response import wire_response
from server.routes.description.errors import ERRORS
from server.serving.served import ServedModel
from server.serving.service import Service
from stages.contract.model import VoiceSpec

OWNER = "nano-vllm-omni"


def model_routes(service: Service) -> APIRouter:
    """The routes that list models and voices."""
    router = APIRouter(tags=["models"], responses=ERRORS)

    @router.get("/v1/models", response_model=ModelList)
    async def list_models() -> Response:
        """Every model name that a request may use: ids and aliases."""
        return wire_response(ModelList(object="list", data=_models(service, service.models)))

    @router.get("/v1/models/{model:path}", response_model=Model)
    async def retrieve_model(model: str) -> Response:
        """One model. Slashes in its id need no escaping."""
        service.model(model)
        return wire_response(_model(model, service.created))

    @router.get("/v1/audio/models", response_model=SpeechModelList)
    async def list_speech_models() -> Response:
        """Every model name that a speech request may use."""
        models = _models(
            service, [served for served in service.models if served.speech is not None]
        )
        return wire_response(SpeechModelList(object="list", models=models, data=models))

    @router.get("/v1/audio/voices", response_model=VoiceList | list[str])
    async def list_voices(legacy: str = "") -> Response:
        """Every voice. With `legacy=true` only the names, as some clients need them."""
        if legacy.lower() in ("1", "true"):
            return JSONResponse([voice.name for voice in all_voices(service)])
        return wire_response(_voice_list(service))

    @router.post("/v1/audio/voices/reload", response_model=VoiceList)
    async def reload_voices() -> Response:
        """Search the voices folder again. Running requests are not affected."""
        await service.reload_voices()
        return wire_response(_voice_list(service))

    return router


def _voice_list(service: Service) -> VoiceList:
    voices = all_voices(service)
    return VoiceList(object="list", voices=voices, data=voices)


def all_voices(service: Service) -> list[Voice]:
    """The voices of all models. Each is listed once, with the models that have it."""
    voices: dict[str, Voice] = {}
    for served in service.models:
        for voice in served.voices.known:
            earlier = voices.get(voice.name)
            models = [*(earlier.models if earlier else ()), served.model_id]
            voices[voice.name] = _voice(voice, served, models, service.created)
    return list(voices.values())


def _voice(voice: VoiceSpec, served: ServedModel, models: list[str], created: int) -> Voice:
    return Voice(
        id=voice.name,
        name=voice.name,
        object="audio.voice",
        created_at=created,
        language=voice.language,
        languages=list(voice.languages or (voice.language,)),
        quality=voice.quality or None,
        sample_rate=voice.rate_hz or None,
        speakers=list(voice.speakers),
        license=voice.licence or None,
        models=models,
        aliases=list(served.voices.aliases(voice.name)),
    )


def _models(service: Service, models: Iterable[ServedModel]) -> list[Model]:
    return [_model(name, service.created) for served in models for name in served.names]


def _model(name: str, created: int) -> Model:
    return Model(id=name, object="model", created=created, owned_by=OWNER)
