"""`GET /openapi.json`: the stored document, which the checks keep true."""

from importlib.resources import files

from fastapi import APIRouter, Response

DOCUMENT = files("openapi").joinpath("openapi.json").read_bytes()


def document_routes() -> APIRouter:
    """The route of the document."""
    router = APIRouter()

    @router.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """What is served, for generators and people."""
        return Response(DOCUMENT, media_type="application/json")

    return router
