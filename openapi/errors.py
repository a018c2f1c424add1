"""The body of every response that is not a success, and of an error event in a stream."""

from openapi.base import ResponseModel


class ErrorDetail(ResponseModel):
    """What went wrong. All four keys are always on the wire; `param` names the field at fault."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorEnvelope(ResponseModel):
    """`{"error": {...}}`."""

    error: ErrorDetail
