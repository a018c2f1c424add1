"""Reads a request's body into its wire model, whatever content type it was sent with.

The limit counts the bytes as they come, with or without a content-length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ValidationError

from openapi.problems import problem_of
from server.errors import RefusedError, TooLargeError

if TYPE_CHECKING:
    from starlette.requests import Request

ModelT = TypeVar("ModelT", bound=BaseModel)


async def read_body(request: Request, model: type[ModelT], max_bytes: int) -> ModelT:
    """The body as `model`. Raises TooLargeError, and RefusedError naming the field at fault."""
    raw = await _read(request, max_bytes)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError(problem_of(error)) from None


async def _read(request: Request, max_bytes: int) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > max_bytes:
        raise TooLargeError(max_bytes)
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > max_bytes:
            raise TooLargeError(max_bytes)
    return bytes(raw)
