"""The body of every error response, and of the error event in a stream."""

from openapi.base import ResponseModel


class ErrorDetail(ResponseModel):
    """What went wrong. All four keys are always present. `param` names the field at fault."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorEnvelope(ResponseModel):
    """`{"error": {...}}`."""

    error: ErrorDetail
