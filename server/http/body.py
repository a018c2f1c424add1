"""Reads a request's body into its wire model. The content type that was sent does not matter.

The size limit counts the bytes that arrive, with or without a content-length. If a body is too
large, up to 16 MiB more are read and discarded. Closing a connection with unread bytes resets it,
and then many clients never see the error.
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
    """The body as `model`. Raises TooLargeError, or RefusedError with the name of the bad field."""
    raw = await read_bytes(request, max_bytes)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise RefusedError(problem_of(error)) from None


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """The body as bytes. Raises TooLargeError if it has more than `max_bytes`."""
    announced = request.headers.get("content-length", "")
    too_large = announced.isdigit() and int(announced) > max_bytes
    if too_large and "expect" in request.headers:  # the client waits for our answer before it sends
        raise TooLargeError(max_bytes)
    raw = bytearray()
    chunks = request.stream()
    while not too_large and (chunk := await anext(chunks, None)) is not None:
        raw += chunk
        too_large = len(raw) > max_bytes
    if too_large:
        await _discard(chunks)
        raise TooLargeError(max_bytes)
    return bytes(raw)


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    left_bytes = DISCARD_BYTES
    with anyio.move_on_after(DISCARD_S):
        while left_bytes > 0 and (chunk := await anext(chunks, None)) is not None:
            left_bytes -= len(chunk)
