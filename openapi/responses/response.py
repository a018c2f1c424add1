"""The response object of `/v1/responses`, and its parts."""

from typing import Any, Literal

from openapi.base import ResponseModel
from openapi.chat.logprobs import TokenLogprob

Status = Literal["in_progress", "completed", "incomplete", "failed"]


class OutputText(ResponseModel):
    """The text of a message. `logprobs` is empty unless requested."""

    type: Literal["output_text"]
    text: str
    annotations: list[dict[str, Any]]
    logprobs: list[TokenLogprob]


class OutputMessage(ResponseModel):
    """The reply. It has one content part, and none while the status is `in_progress`."""

    id: str
    type: Literal["message"]
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["assistant"]
    content: list[OutputText]


class InputDetails(ResponseModel):
    """The parts of `input_tokens`."""

    cached_tokens: int
    cache_write_tokens: int


class OutputDetails(ResponseModel):
    """The parts of `output_tokens`."""

    reasoning_tokens: int


class ResponseUsage(ResponseModel):
    """The usage of one response. The total is the sum."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class IncompleteDetails(ResponseModel):
    """Why a response ended early."""

    reason: Literal["max_output_tokens"]


class ResponseObject(ResponseModel):
    """A response: the parameters of its request, and its output so far.

    The fields from `background` to `truncation` always have the same value on this server.
    """

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Status
    error: None
    incomplete_details: IncompleteDetails | None
    instructions: str | None
    max_output_tokens: int | None
    model: str
    output: list[OutputMessage]
    previous_response_id: str | None
    store: bool
    temperature: float
    top_p: float
    top_logprobs: int
    text: dict[str, Any]
    metadata: dict[str, str]
    usage: ResponseUsage | None
    background: bool = False
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    max_tool_calls: None = None
    parallel_tool_calls: bool = True
    prompt_cache_key: None = None
    reasoning: dict[str, None] = {"effort": None, "summary": None}  # noqa: RUF012 - pydantic copies
    safety_identifier: None = None
    service_tier: Literal["default"] = "default"
    tool_choice: Literal["auto", "none"] = "auto"
    tools: list[dict[str, Any]] = []  # noqa: RUF012 - pydantic copies
    truncation: Literal["disabled"] = "disabled"

    def wire(self) -> bytes:
        """The JSON body, with every field."""
        return self.model_dump_json().encode()


class ResponseDeleted(ResponseModel):
    """The response of `DELETE /v1/responses/{id}`."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]
