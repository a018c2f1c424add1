"""The ASGI app: routes, middleware and error handlers. Its lifespan runs the service."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from sse_starlette.sse import AppStatus
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from openapi.problems import Problem, param_of
from server import VERSION
from server.config.keys import keys_of
from server.errors import RefusedError, log_failure
from server.http.auth import Auth
from server.http.cors import Cors
from server.http.json_response import error_response, http_error_response
from server.http.methods import Methods
from server.http.request_log import RequestLog
from server.http.root_path import RootPath
from server.observe import Observer
from server.routes.chat import chat_routes
from server.routes.completions import completion_routes
from server.routes.debug import debug_routes
from server.routes.document import document_routes
from server.routes.health import health_routes
from server.routes.metrics import metrics_routes
from server.routes.models import model_routes
from server.routes.playground import playground_routes
from server.routes.responses import response_routes
from server.routes.speech import speech_routes
from server.routes.voices import voice_routes
from stages.contract.errors import OmniError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from server.serving.service import Service


def create_app(service: Service) -> ASGIApp:
    """The complete application. Raises SettingsError if the API keys cannot be read."""
    # Streams that still run at shutdown may finish.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    observer, settings = Observer(service, VERSION), service.settings
    api = create_api(service, observer)
    app: ASGIApp = Auth(Methods(api, list(_routes_of(api))), keys_of(settings))
    if settings.cors_origins:
        app = Cors(app, settings.cors_origins)
    app = RequestLog(app, observer)
    return RootPath(app, settings.root_path) if settings.root_path else app


def create_api(service: Service, observer: Observer) -> FastAPI:
    """The routes and error handlers, without the middleware."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running(), observer.running():
            yield

    api = FastAPI(
        title="nano-vllm-omni",
        version=VERSION,
        lifespan=lifespan,
        redirect_slashes=False,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
    )
    for routes in (
        speech_routes,
        chat_routes,
        completion_routes,
        response_routes,
        model_routes,
        voice_routes,
        health_routes,
    ):
        api.include_router(routes(service))
    api.include_router(document_routes())
    api.include_router(playground_routes())
    api.include_router(metrics_routes(observer))
    if service.settings.debug_routes:
        api.include_router(debug_routes(observer))
    for kind in (RefusedError, OmniError, ClientDisconnect, Exception):
        api.add_exception_handler(kind, _answer)
    api.add_exception_handler(HTTPException, _answer_http)
    api.add_exception_handler(RequestValidationError, _answer_validation)
    return api


def _routes_of(api: FastAPI) -> Iterator[Route]:
    for context in iter_route_contexts(api.routes):
        if isinstance(context.original_route, Route):
            yield context.original_route


async def _answer(_: Request, error: Exception) -> Response:
    response = error_response(error)
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(error)
    return response


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return http_error_response(error, request.scope)


async def _answer_validation(request: Request, error: Exception) -> Response:
    """Answer a wrong parameter of the URL. Bodies are checked in `http/body.py`."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    param = param_of(first["loc"][1:])
    problem = Problem(f"Invalid value for '{param}': {first['msg']}.", param, "invalid_value")
    return await _answer(request, RefusedError(problem))
