"""`POST /v1/responses`, and `GET` and `DELETE` of a stored response."""

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from openapi.responses.request import ResponseRequest
from openapi.responses.response import ResponseDeleted, ResponseObject
from server.errors import UnknownResponseError
from server.http.auth import key_of
from server.http.body import read_body
from server.http.json_response import wire_response
from server.observe import note_body
from server.operations.responses.plan import plan_response
from server.operations.responses.response import response_response
from server.operations.responses.stored import StoredResponse
from server.operations.shared.expiring_store import ExpiringStore
from server.routes.description.errors import ERRORS, Answers
from server.routes.description.operations import RESPONSE_STREAM, body_of
from server.serving.service import Service

ANSWERS: Answers = {
    200: {"description": "The response.", "model": ResponseObject, "content": RESPONSE_STREAM},
    **ERRORS,
}


def response_routes(service: Service) -> APIRouter:
    """The routes of `/v1/responses`."""
    router = APIRouter(tags=["responses"], responses=ERRORS)
    settings = service.settings
    stored = ExpiringStore[StoredResponse]()

    @router.post(
        "/v1/responses",
        response_class=Response,
        responses=ANSWERS,
        openapi_extra=body_of(ResponseRequest),
    )
    async def create_response(request: Request) -> Response:
        """Reply in text. The reply can be streamed."""
        body = await read_body(request, ResponseRequest, settings.max_body_bytes)
        note_body(request, service, body, body.model)
        plan = await plan_response(service, body, stored)
        return response_response(plan, settings, stored, key_of(request))

    @router.post("/v1/responses/compact", include_in_schema=False)
    async def compact() -> Response:
        """Not supported: 404. Without this route it would be a 405: `compact` looks like an id."""
        raise HTTPException(404)

    @router.get("/v1/responses/{response_id}", response_model=ResponseObject)
    async def retrieve_response(response_id: str) -> Response:
        """A stored response. Responses are stored for an hour."""
        if (found := stored.get(response_id)) is None:
            raise UnknownResponseError(response_id)
        return wire_response(found.response)

    @router.delete("/v1/responses/{response_id}", response_model=ResponseDeleted)
    async def delete_response(response_id: str) -> Response:
        """Delete a stored response."""
        if not stored.drop(response_id):
            raise UnknownResponseError(response_id)
        return wire_response(ResponseDeleted(id=response_id, object="response", deleted=True))

    return router
