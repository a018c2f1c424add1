"""A wire model as a JSON response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openapi.base import ResponseModel


def wire_response(
    body: ResponseModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """`body` with the fields that were set."""
    return Response(body.wire(), status, headers, media_type="application/json")
