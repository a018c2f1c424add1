"""Reads a request's body into its wire model, whatever content type it was sent with.

The limit counts the bytes as they come, with or without a content-length. Of a body that is too
large a little more is read and thrown away: a connection that is closed on unread bytes is reset,
and then many clients never see why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
from pydantic import BaseModel, ValidationError

from openapi.problems import problem_of
from server.errors import RefusedError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

DISCARD_BYTES = 16 * 2**20
DISCARD_S = 5.0

ModelT = TypeVar("ModelT", bound=BaseModel)


async def read_body(request: Request, model: type[ModelT], max_bytes: int) -> ModelT:
    """The body as `model`. Raises TooLargeError, and RefusedError naming the field at fault."""
    raw = await read_bytes(request, max_bytes)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError(problem_of(error)) from None


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """The body as it is. Raises TooLargeError."""
    announced = request.headers.get("content-length", "")
    too_large = announced.isdigit() and int(announced) > max_bytes
    if too_large and "expect" in request.headers:  # the client waits before it sends
        raise TooLargeError(max_bytes)
    raw = bytearray()
    pieces = request.stream()
    while not too_large and (piece := await anext(pieces, None)) is not None:
        raw += piece
        too_large = len(raw) > max_bytes
    if too_large:
        await _discard(pieces)
        raise TooLargeError(max_bytes)
    return bytes(raw)


async def _discard(pieces: AsyncIterator[bytes]) -> None:
    left = DISCARD_BYTES
    with anyio.move_on_after(DISCARD_S):
        while left > 0 and (piece := await anext(pieces, None)) is not None:
            left -= len(piece)
