"""Reads a form with one file: `multipart/form-data`, as browsers and other clients send files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from openapi.problems import Problem, missing, problem_of
from server.errors import RefusedError
from server.http.body import ModelT, read_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

FORM = "multipart/form-data"
FIELDS_BYTES = 64 * 2**10  # for all other fields, and for the form around them
MAX_FIELDS = 16


async def read_form(
    request: Request, model: type[ModelT], file: str, max_bytes: int
) -> tuple[ModelT, bytes]:
    """The form's fields as `model`, and the bytes of the field `file`.

    Raises TooLargeError, or RefusedError with the name of the bad field.
    """
    if not request.headers.get("content-type", "").startswith(FORM):
        raise RefusedError(Problem(f"Invalid content type: this endpoint takes '{FORM}'."))
    raw = await read_bytes(request, max_bytes + FIELDS_BYTES)
    parser = MultiPartParser(
        request.headers, _once(raw), max_files=1, max_fields=MAX_FIELDS, max_part_size=FIELDS_BYTES
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError) as error:
        raise RefusedError(
            Problem(f"We could not parse the form of your request: {error}")
        ) from None
    try:
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        sent = form.get(file)
        if not isinstance(sent, UploadFile):
            raise RefusedError(missing(file))
        return model.model_validate(fields), await sent.read()
    except ValidationError as error:
        raise RefusedError(problem_of(error)) from None
    finally:
        await form.close()


async def _once(raw: bytes) -> AsyncGenerator[bytes]:
    yield raw
