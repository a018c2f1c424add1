"""`GET /openapi.json`: the stored document. A check in CI compares it with the routes."""

from importlib.resources import files

from fastapi import APIRouter, Response

DOCUMENT = files("openapi").joinpath("openapi.json").read_bytes()


def document_routes() -> APIRouter:
    """The route of the document."""
    router = APIRouter()

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """The OpenAPI document of this server."""
        return Response(DOCUMENT, media_type="application/json")

    return router
