"""The app: routes, the handlers that answer errors, and the service's life as the lifespan."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sse_starlette.sse import AppStatus
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from openapi.problems import Problem, param_of
from server.edge import Edge
from server.errors import RefusedError, answer_to, answer_to_http, log_failure
from server.routes.chat import chat_routes
from server.routes.completions import completion_routes
from server.routes.health import health_routes
from server.routes.models import model_routes
from server.routes.responses import response_routes
from server.routes.speech import speech_routes
from server.wire import wire_response
from stages.errors import OmniError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.responses import Response

    from server.service import Service

VERSION = "0.1.0"


def create_app(service: Service) -> Edge:
    """The whole application as ASGI."""
    # Streams that run may finish on shutdown.
    AppStatus.disable_automatic_graceful_drain()  # type: ignore[no-untyped-call]
    return Edge(create_api(service))


def create_api(service: Service) -> FastAPI:
    """The routes and handlers, without the outermost layer."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    api = FastAPI(
        title="nano-vllm-omni",
        version=VERSION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    for routes in (
        speech_routes,
        chat_routes,
        completion_routes,
        response_routes,
        model_routes,
        health_routes,
    ):
        api.include_router(routes(service))
    for kind in (RefusedError, OmniError, ClientDisconnect, Exception):
        api.add_exception_handler(kind, _answer)
    api.add_exception_handler(HTTPException, _answer_http)
    api.add_exception_handler(RequestValidationError, _answer_validation)
    return api


async def _answer(_: Request, error: Exception) -> Response:
    answer = answer_to(error)
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log_failure(error)
    return wire_response(answer.body, answer.status, answer.headers)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = answer_to_http(error, request.method, request.url.path)
    return wire_response(answer.body, answer.status, answer.headers)


async def _answer_validation(request: Request, error: Exception) -> Response:
    """A parameter of the URL that is wrong; bodies are checked in `body.py`."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    param = param_of(first["loc"][1:])
    problem = Problem(f"Invalid value for '{param}': {first['msg']}.", param, "invalid_value")
    return await _answer(request, RefusedError(problem))
